// Inserted into the pages of noVNC and spice-html5 by the console proxy; the packages' files stay unchanged.
// It adds the token to the page's WebSockets, and shows a message when one is closed.
(function () {
  "use strict";

  var query = new URLSearchParams(location.search);
  var token = query.get("token") || "";
  var Real = window.WebSocket;
  var leaving = false, shown = 0, why = window.novaWhy;

  // vnc_auto.html, by its name and in older noVNC, connects without a click
  if (/\/vnc_auto\.html$/.test(location.pathname) && !/[?#&]autoconnect=/.test(location.href)) {
    history.replaceState(history.state, "", location.href + (location.hash ? "&" : "#") + "autoconnect=true");
  }

  // spice_auto.html would store the token in a cookie for a day, readable by every page and script of this host
  var cookie = Object.getOwnPropertyDescriptor(Document.prototype, "cookie");
  if (token && cookie && cookie.configurable) {
    Object.defineProperty(document, "cookie", {
      configurable: true,
      get: function () { return cookie.get.call(document); },
      set: function (text) { if (!/^\s*token\s*=/.test(text)) { cookie.set.call(document, text); } }
    });
  }

  // In a dashboard's frame, browsers may deny access to the storage, and noVNC would stop with an error
  try { void window.localStorage; } catch (_) {
    var kept = {};
    Object.defineProperty(window, "localStorage", { configurable: true, value: {
      getItem: function (name) { return Object.prototype.hasOwnProperty.call(kept, name) ? kept[name] : null; },
      setItem: function (name, value) { kept[name] = String(value); },
      removeItem: function (name) { delete kept[name]; },
      clear: function () { kept = {}; }
    } });
  }

  // spice-html5 (0.3) drops a leading zero byte of the ticket that it encrypts, for one channel in 256, and the hypervisor
  // then says "permission denied": its numbers of 1024 bits are written whole.
  if (/\/spice[^/]*\.html$/.test(location.pathname)) {
    import(new URL("thirdparty/jsbn.js", location.href).href).then(function (module) {
      var numbers = module.BigInteger.prototype, write = numbers.toString;
      numbers.toString = function (base) {
        var text = write.call(this, base);
        return base === 16 && text.length > 192 && text.length < 256 ? text.padStart(256, "0") : text;
      };
    }).catch(function () { /* another release, without it */ });
  }

  function withToken(address) {
    var url = new URL(address, location.href);
    if (token && url.host === location.host && !url.searchParams.has("token")) {
      url.searchParams.set("token", token);
      return url.href;
    }
    return address;
  }

  // Return the browser's own objects, because noVNC checks their type.
  function Watched(address, protocols) {
    var socket = protocols === undefined ? new Real(withToken(address)) : new Real(withToken(address), protocols);
    var opened = false, mine = false;
    socket.close = function () { mine = true; Real.prototype.close.apply(socket, arguments); };
    socket.addEventListener("open", function () { opened = true; });
    socket.addEventListener("close", function (event) { closed(event, opened, mine); });
    return socket;
  }
  Watched.prototype = Real.prototype;
  ["CONNECTING", "OPEN", "CLOSING", "CLOSED"].forEach(function (name) { Watched[name] = Real[name]; });
  window.WebSocket = Watched;
  window.addEventListener("pagehide", function () { leaving = true; });
  window.addEventListener("beforeunload", function () { leaving = true; });

  function closed(event, opened, mine) {
    if (leaving) { return; }
    if (mine && opened) { show("This console is closed.", 1); return; }
    why(event, opened, show);
  }

  // Keep the message with the most weight: a console with several connections is closed several times.
  function show(words, weight) {
    if (weight <= shown) { return; }
    shown = weight;
    if (document.body) { banner(words); } else { document.addEventListener("DOMContentLoaded", function () { banner(words); }); }
  }

  function banner(words) {
    var host = document.getElementById("nova-session") || document.createElement("div");
    host.id = "nova-session";
    host.style.cssText = "position:fixed;top:0;left:0;right:0;z-index:2147483647;";
    var root = host.shadowRoot || host.attachShadow({ mode: "open" });
    root.innerHTML = "<style>" +
      ".bar{margin:52px auto 0;max-width:44rem;width:calc(100% - 28px);box-sizing:border-box;display:flex;gap:1rem;align-items:center;" +
      "padding:.7rem .8rem .7rem 1.1rem;font:15px/1.45 system-ui,'Segoe UI','DejaVu Sans',sans-serif;color:#1b2430;background:#fff;" +
      "border:1px solid #d3d9e2;border-left:5px solid #b3432b;border-radius:8px;box-shadow:0 4px 18px rgb(0 0 0/.28)}" +
      "span{flex:1;overflow-wrap:anywhere}button{font:inherit;font-weight:600;padding:.35rem .9rem;border:0;border-radius:6px;" +
      "background:#2457a6;color:#fff;cursor:pointer}button:focus-visible{outline:3px solid #8db4f2;outline-offset:2px}" +
      "@media(prefers-color-scheme:dark){.bar{color:#e6eaf0;background:#1b212a;border-color:#2c3541;border-left-color:#ec8a72}" +
      "button{background:#8db4f2;color:#12161c}}" +
      "</style><div class='bar' role='alert'><span></span><button type='button'>Reconnect</button></div>";
    root.querySelector("span").textContent = words;
    root.querySelector("button").addEventListener("click", function () { location.reload(); });
    document.body.appendChild(host);
  }
}());
