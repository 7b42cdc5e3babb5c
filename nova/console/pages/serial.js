// A server's serial port in a terminal. Works with xterm.js 3 and newer.
(function () {
  "use strict";

  var LINES = 10000, MANY = 8192, FONT_KEY = "nova-serial-font";
  var screen = document.getElementById("screen"), state = document.getElementById("state");
  var notice = document.getElementById("notice"), words = document.getElementById("words");
  var query = new URLSearchParams(location.search);
  var title = query.get("title");
  var socket = null, leaving = false;
  var encoder = new TextEncoder(), decoder;

  if (title) {
    document.getElementById("title").textContent = title;
    document.title = title + " \u2013 serial console";
  }

  var terminal = new window.Terminal({
    cursorBlink: true, scrollback: LINES, fontSize: size(), rendererType: "dom",  // 3's canvas cuts letters off in new browsers
    fontFamily: '"DejaVu Sans Mono", "Liberation Mono", Menlo, Consolas, monospace',
    theme: { background: "#11151a", foreground: "#d7dde5", cursor: "#8db4f2", selection: "rgba(141,180,242,0.3)",
             selectionBackground: "rgba(141,180,242,0.3)" }
  });
  terminal.open(screen);
  if (terminal.onData) { terminal.onData(send); } else { terminal.on("data", send); }

  // -- the size: as many rows and columns as the window has room for

  function size() {
    try { return Math.min(32, Math.max(8, parseInt(localStorage.getItem(FONT_KEY), 10) || 15)); } catch (_) { return 15; }
  }

  function fit() {
    var drawn = screen.querySelector(".xterm-screen");
    if (!drawn || !drawn.offsetWidth || !drawn.offsetHeight) { return; }
    var wide = drawn.offsetWidth / terminal.cols, high = drawn.offsetHeight / terminal.rows;
    var columns = Math.max(20, Math.floor((screen.clientWidth - 16) / wide)), rows = Math.max(5, Math.floor(screen.clientHeight / high));
    if (columns !== terminal.cols || rows !== terminal.rows) { terminal.resize(columns, rows); }
  }

  function resize(step) {
    var font = Math.min(32, Math.max(8, size() + step));
    try { localStorage.setItem(FONT_KEY, font); } catch (_) { /* it is not kept, then */ }
    if (terminal.setOption) { terminal.setOption("fontSize", font); } else { terminal.options.fontSize = font; }
    requestAnimationFrame(function () { requestAnimationFrame(fit); });
    terminal.focus();
  }

  // -- the connection

  function connect() {
    notice.hidden = true;
    tell("", "Connecting");
    decoder = new TextDecoder("utf-8");  // keeps half a letter until the rest has come
    var address = new URL(location.href), opened = false;
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    address.hash = "";
    var mine = socket = new WebSocket(address.href, "binary");
    mine.binaryType = "arraybuffer";
    mine.onopen = function () { opened = true; tell("open", "Connected"); fit(); terminal.focus(); };
    mine.onmessage = function (event) { terminal.write(decoder.decode(new Uint8Array(event.data), { stream: true })); };
    mine.onclose = function (event) { if (mine === socket && !leaving) { closed(event, opened); } };
  }

  function send(text) {
    if (!socket || socket.readyState !== WebSocket.OPEN) { return; }
    var bytes = encoder.encode(text);
    for (var at = 0; at < bytes.length; at += MANY) { socket.send(bytes.subarray(at, at + MANY)); }
  }

  function closed(event, opened) {
    tell("closed", "Closed");
    window.novaWhy(event, opened, show);
  }

  function tell(kind, text) { state.className = kind; state.textContent = text; }

  function show(text) { words.textContent = text; notice.hidden = false; document.getElementById("again").focus(); }

  // -- the buttons

  function saved() {
    var buffer = terminal.buffer ? (terminal.buffer.active || terminal.buffer) : null, lines = [];
    if (buffer && buffer.getLine) {
      for (var row = 0; row < buffer.length; row++) { lines.push(buffer.getLine(row).translateToString(true)); }
    } else {
      var old = terminal._core.buffer;
      for (var line = 0; line < old.lines.length; line++) { lines.push(old.translateBufferLineToString(line, true)); }
    }
    return lines.join("\n").replace(/\s+$/, "") + "\n";
  }

  function save() {
    var link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([saved()], { type: "text/plain" }));
    link.download = "console.txt";
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
    terminal.focus();
  }

  document.getElementById("again").addEventListener("click", connect);
  document.getElementById("smaller").addEventListener("click", function () { resize(-1); });
  document.getElementById("larger").addEventListener("click", function () { resize(1); });
  document.getElementById("save").addEventListener("click", save);
  window.addEventListener("resize", fit);
  window.addEventListener("pagehide", function () { leaving = true; });
  window.addEventListener("pageshow", function (event) { leaving = false; if (event.persisted) { connect(); } });
  window.addEventListener("load", fit);
  if (window.ResizeObserver) { new ResizeObserver(fit).observe(screen); }
  fit();
  connect();
}());
