// A plain terminal, for a proxy without xterm.js: text, colours, the cursor and line editing (a part of ECMA-48).
// It has the part of xterm.js's interface that serial.js uses.
(function () {
  "use strict";

  var NORMAL = ["#2e3436", "#e06c5f", "#8bc46a", "#d9b44a", "#6ea3e8", "#b98fd6", "#5bb8b8", "#d7dde5"];
  var BRIGHT = ["#767f89", "#ff8f80", "#a8e085", "#f5d36b", "#93c0ff", "#d6b0f0", "#7fdcdc", "#ffffff"];
  var PLAIN = Object.freeze({ fg: "", bg: "", bold: false, underline: false, inverse: false });
  var KEYS = { Enter: "\r", Backspace: "\x7f", Tab: "\t", Escape: "\x1b", ArrowUp: "\x1b[A", ArrowDown: "\x1b[B",
               ArrowRight: "\x1b[C", ArrowLeft: "\x1b[D", Home: "\x1b[H", End: "\x1b[F", Delete: "\x1b[3~",
               Insert: "\x1b[2~", PageUp: "\x1b[5~", PageDown: "\x1b[6~" };
  // ESC, then: a CSI sequence; an OSC string; the choice of a character set; any other letter
  var SEQUENCE = /^\x1b(?:\[([0-9;?<=>]*)[ -\/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()*+#%].|([^[\]()*+#%]))/;
  var LONGEST = 4096;  // characters of a sequence that has not ended; more is text

  function blank(columns) {
    var cells = [];
    for (var at = 0; at < columns; at++) { cells.push([" ", PLAIN]); }
    return cells;
  }

  function textOf(cells) { return cells.map(function (cell) { return cell[0]; }).join("").replace(/ +$/, ""); }

  function bounded(value, least, most) { return Math.min(most, Math.max(least, value)); }

  // One of 256 colours, as xterm numbers them.
  function colour(number) {
    if (number < 16) { return (number < 8 ? NORMAL : BRIGHT)[number % 8]; }
    if (number > 231) { return grey(8 + 10 * (number - 232)); }
    var parts = [Math.floor((number - 16) / 36), Math.floor((number - 16) / 6) % 6, (number - 16) % 6];
    return "rgb(" + parts.map(function (part) { return part ? 55 + 40 * part : 0; }).join(",") + ")";
  }

  function grey(level) { return "rgb(" + level + "," + level + "," + level + ")"; }

  function Terminal(options) {
    var me = this, theme = options.theme;
    this.cols = 80;
    this.rows = 24;
    this.options = { get fontSize() { return options.fontSize; },
                     set fontSize(size) { options.fontSize = size; if (me.root) { me.root.style.fontSize = size + "px"; } } };
    this.buffer = { active: { get length() { return me.past.length + me.lines.length; },
                              getLine: function (row) {
                                var cells = row < me.past.length ? me.past[row] : me.lines[row - me.past.length];
                                return { translateToString: function () { return textOf(cells); } };
                              } } };
    this.keep = options.scrollback;
    this.past = [];   // lines above the screen
    this.lines = [];  // those of the screen
    for (var row = 0; row < this.rows; row++) { this.lines.push(blank(this.cols)); }
    this.x = this.y = 0;
    this.saved = [0, 0];
    this.top = 0;     // of the region that scrolls
    this.bottom = this.rows - 1;
    this.style = PLAIN;
    this.waiting = "";  // the beginning of a sequence
    this.listener = function () { };
    this.font = options.fontFamily;
    this.theme = theme;
  }

  Terminal.prototype.open = function (parent) {
    this.root = element("div", "plain", parent);
    this.root.style.cssText = "font-family:" + this.font + ";font-size:" + this.options.fontSize + "px";
    this.history = element("div", "plain-past", this.root);
    this.screen = element("div", "xterm-screen", this.root);
    this.input = element("textarea", "plain-input", this.root);
    this.input.setAttribute("aria-label", "Terminal input");
    this.input.setAttribute("autocapitalize", "off");
    this.input.setAttribute("spellcheck", "false");
    this.input.addEventListener("keydown", this.key.bind(this));
    this.input.addEventListener("input", this.typed.bind(this));
    this.root.addEventListener("mouseup", function () {
      if (!String(window.getSelection())) { this.focus(); }
    }.bind(this));
    this.draw();
  };

  Terminal.prototype.onData = function (listener) { this.listener = listener; };
  Terminal.prototype.focus = function () { this.input.focus({ preventScroll: true }); };

  Terminal.prototype.resize = function (columns, rows) {
    this.lines.concat(this.past).forEach(function (cells) {
      while (cells.length < columns) { cells.push([" ", PLAIN]); }
    });
    while (this.lines.length > rows) {  // empty lines below the cursor go first
      if (this.y < this.lines.length - 1) { this.lines.pop(); } else { this.remember(this.lines.shift()); this.y--; }
    }
    while (this.lines.length < rows) { this.lines.push(blank(columns)); }
    this.cols = columns;
    this.rows = rows;
    this.top = 0;
    this.bottom = rows - 1;
    this.x = bounded(this.x, 0, columns - 1);
    this.y = bounded(this.y, 0, rows - 1);
    this.draw();
  };

  // -- what the user types

  Terminal.prototype.key = function (event) {
    var letter = event.key.length === 1 ? event.key.toLowerCase() : "", data = KEYS[event.key];
    if (event.isComposing || event.metaKey) { return; }
    if (event.ctrlKey && !event.altKey && letter) {
      if (event.shiftKey && letter === "c" || letter === "v") { return; }  // the browser's own: copy and paste
      data = letter >= "a" && letter <= "z" || "[\\]^_@".indexOf(letter) >= 0 ? String.fromCharCode(letter.toUpperCase().charCodeAt(0) & 31)
        : letter === " " ? "\0" : undefined;
    } else if (event.altKey && !event.ctrlKey && letter) { data = "\x1b" + event.key; }
    if (data === undefined) { return; }
    event.preventDefault();
    this.listener(data);
  };

  Terminal.prototype.typed = function (event) {
    if (event.isComposing) { return; }
    var text = this.input.value.replace(/\r?\n/g, "\r");
    this.input.value = "";
    if (text) { this.listener(text); }
  };

  // -- what the guest sends

  Terminal.prototype.write = function (text) {
    var rest = this.waiting + text;
    this.waiting = "";
    while (rest) {
      if (rest[0] === "\x1b") {
        var found = SEQUENCE.exec(rest);
        if (!found && rest.length < LONGEST) { this.waiting = rest; break; }
        rest = rest.slice(found ? found[0].length : 1);
        if (found && found[2]) { this.control(found[2], found[1]); } else if (found && found[3]) { this.escape(found[3]); }
        continue;
      }
      var letter = String.fromCodePoint(rest.codePointAt(0));
      rest = rest.slice(letter.length);
      this.letter(letter);
    }
    this.later();
  };

  Terminal.prototype.letter = function (letter) {
    if (letter === "\r") { this.x = 0; return; }
    if (letter === "\n" || letter === "\v" || letter === "\f") { this.feed(); return; }
    if (letter === "\b") { this.x = Math.max(0, Math.min(this.x, this.cols - 1) - 1); return; }
    if (letter === "\t") { this.x = Math.min(this.cols - 1, this.x - this.x % 8 + 8); return; }
    if (letter < " " || letter === "\x7f") { return; }
    if (this.x >= this.cols) { this.x = 0; this.feed(); }
    this.lines[this.y][this.x++] = [letter, this.style];
  };

  Terminal.prototype.feed = function () {
    if (this.y === this.bottom) { this.scroll(1); } else if (this.y < this.rows - 1) { this.y++; }
  };

  // Lines of the region go up (or down, for a negative number); those of the whole screen are remembered.
  Terminal.prototype.scroll = function (lines) {
    for (var count = Math.min(Math.abs(lines), this.rows); count; count--) {
      var gone = this.lines.splice(lines > 0 ? this.top : this.bottom, 1)[0];
      if (lines > 0 && this.top === 0) { this.remember(gone); }
      this.lines.splice(lines > 0 ? this.bottom : this.top, 0, blank(this.cols));
    }
  };

  Terminal.prototype.remember = function (cells) {
    this.past.push(cells);
    if (this.history) { this.history.appendChild(this.drawn(cells, -1)); }
    while (this.past.length > this.keep) {
      this.past.shift();
      if (this.history) { this.history.removeChild(this.history.firstChild); }
    }
  };

  Terminal.prototype.escape = function (letter) {
    if (letter === "7") { this.saved = [this.x, this.y]; }
    if (letter === "8") { this.x = this.saved[0]; this.y = Math.min(this.saved[1], this.rows - 1); }
    if (letter === "D") { this.feed(); }
    if (letter === "E") { this.x = 0; this.feed(); }
    if (letter === "M") { if (this.y === this.top) { this.scroll(-1); } else { this.y = Math.max(0, this.y - 1); } }
    if (letter === "c") { this.style = PLAIN; this.top = 0; this.bottom = this.rows - 1; this.erase(2); this.x = this.y = 0; }
  };

  // Final letter of a CSI sequence -> what it does with its numbers; `first` is 1 where there is none.
  var CONTROLS = {
    A: function (first) { this.y = Math.max(0, this.y - first); },
    B: function (first) { this.y = Math.min(this.rows - 1, this.y + first); },
    C: function (first) { this.x = Math.min(this.cols - 1, this.x + first); },
    D: function (first) { this.x = Math.max(0, Math.min(this.x, this.cols - 1) - first); },
    E: function (first) { this.x = 0; this.y = Math.min(this.rows - 1, this.y + first); },
    F: function (first) { this.x = 0; this.y = Math.max(0, this.y - first); },
    G: function (first) { this.x = bounded(first - 1, 0, this.cols - 1); },
    H: function (first, numbers) { this.y = bounded(first - 1, 0, this.rows - 1); this.x = bounded((numbers[1] || 1) - 1, 0, this.cols - 1); },
    J: function (_first, numbers) { this.erase(numbers[0] || 0); },
    K: function (_first, numbers) {
      var from = numbers[0] ? 0 : this.x, to = numbers[0] === 1 ? this.x + 1 : this.cols;
      for (var at = from; at < to && at < this.cols; at++) { this.lines[this.y][at] = [" ", this.style]; }
    },
    L: function (first) { this.within(function () { this.scroll(-first); }); },
    M: function (first) { this.within(function () { this.scroll(first); }); },
    P: function (first) { this.lines[this.y].splice(this.x, first); this.fill(); },
    "@": function (first) {
      for (var count = Math.min(first, this.cols); count; count--) { this.lines[this.y].splice(this.x, 0, [" ", PLAIN]); }
      this.lines[this.y].length = this.cols;
    },
    X: function (first) { for (var at = this.x; at < Math.min(this.cols, this.x + first); at++) { this.lines[this.y][at] = [" ", this.style]; } },
    S: function (first) { this.scroll(first); },
    T: function (first) { this.scroll(-first); },
    d: function (first) { this.y = bounded(first - 1, 0, this.rows - 1); },
    m: function (_first, numbers) { this.look(numbers.length ? numbers : [0]); },
    n: function (first) { if (first === 6) { this.listener("\x1b[" + (this.y + 1) + ";" + (Math.min(this.x, this.cols - 1) + 1) + "R"); } },
    r: function (first, numbers) {
      var bottom = bounded((numbers[1] || this.rows) - 1, 0, this.rows - 1);
      this.top = bounded(first - 1, 0, bottom);
      this.bottom = bottom;
      this.x = this.y = 0;
    },
    s: function () { this.saved = [this.x, this.y]; },
    u: function () { this.escape("8"); }
  };
  CONTROLS.f = CONTROLS.H;
  CONTROLS["`"] = CONTROLS.G;

  Terminal.prototype.control = function (letter, parameters) {
    if (/[?<=>]/.test(parameters)) { return; }  // modes: of those there are none here
    var numbers = parameters === "" ? [] : parameters.split(";").map(function (word) { return bounded(parseInt(word, 10) || 0, 0, 9999); });
    if (CONTROLS[letter]) { CONTROLS[letter].call(this, numbers[0] || 1, numbers); }
  };

  // Insert or delete lines: the region begins at the cursor meanwhile, and nothing is remembered.
  Terminal.prototype.within = function (act) {
    if (this.y < this.top || this.y > this.bottom) { return; }
    var top = this.top, keep = this.remember;
    this.top = this.y;
    this.remember = function () { };
    act.call(this);
    this.remember = keep;
    this.top = top;
  };

  Terminal.prototype.fill = function () {
    while (this.lines[this.y].length < this.cols) { this.lines[this.y].push([" ", PLAIN]); }
  };

  // 0: from the cursor on; 1: up to it; 2: the screen; 3: and what was above it.
  Terminal.prototype.erase = function (what) {
    for (var row = 0; row < this.rows; row++) {
      if (what >= 2 || what === 0 && row > this.y || what === 1 && row < this.y) { this.lines[row] = blank(this.cols); }
    }
    if (what < 2) { CONTROLS.K.call(this, 1, [what]); }
    if (what === 3) { this.past = []; this.history.textContent = ""; }
  };

  Terminal.prototype.look = function (numbers) {
    var style = Object.assign({}, this.style);
    for (var at = 0; at < numbers.length; at++) {
      var number = numbers[at], side = number >= 40 && number < 50 || number >= 100 ? "bg" : "fg";
      if (number === 0) { style = Object.assign({}, PLAIN); }
      if (number === 1 || number === 22) { style.bold = number === 1; }
      if (number === 4 || number === 24) { style.underline = number === 4; }
      if (number === 7 || number === 27) { style.inverse = number === 7; }
      if (number >= 30 && number <= 37 || number >= 40 && number <= 47) { style[side] = NORMAL[number % 10]; }
      if (number >= 90 && number <= 97 || number >= 100 && number <= 107) { style[side] = BRIGHT[number % 10]; }
      if (number === 39 || number === 49) { style[side] = ""; }
      if (number === 38 || number === 48) {
        if (numbers[at + 1] === 5) { style[side] = colour(bounded(numbers[at + 2] || 0, 0, 255)); at += 2; }
        if (numbers[at + 1] === 2) {
          style[side] = "rgb(" + [2, 3, 4].map(function (next) { return bounded(numbers[at + next] || 0, 0, 255); }).join(",") + ")";
          at += 4;
        }
      }
    }
    this.style = Object.freeze(style);
  };

  // -- what is shown

  Terminal.prototype.later = function () {
    if (this.drawing || !this.root) { return; }
    this.drawing = true;
    requestAnimationFrame(function () { this.drawing = false; this.draw(); }.bind(this));
  };

  Terminal.prototype.draw = function () {
    if (!this.root) { return; }
    var follows = this.root.scrollTop + this.root.clientHeight >= this.root.scrollHeight - 30;
    this.screen.textContent = "";
    this.screen.style.width = this.cols + "ch";
    this.lines.forEach(function (cells, row) {
      this.screen.appendChild(this.drawn(cells, row === this.y ? Math.min(this.x, this.cols - 1) : -1));
    }, this);
    if (follows) { this.root.scrollTop = this.root.scrollHeight; }
  };

  // A line: runs of letters that look the same. `cursor`: its column, or -1.
  Terminal.prototype.drawn = function (cells, cursor) {
    var line = element("div", "plain-line"), run = null, last = null;
    cells.slice(0, this.cols).forEach(function (cell, column) {
      if (!run || cell[1] !== last || column === cursor || column === cursor + 1) {
        run = element("span", column === cursor ? "plain-cursor" : "", line);
        last = cell[1];
        var fg = last.inverse ? last.bg || this.theme.background : last.fg, bg = last.inverse ? last.fg || this.theme.foreground : last.bg;
        if (column !== cursor) { run.style.color = fg; run.style.backgroundColor = bg; }
        if (last.bold) { run.style.fontWeight = "bold"; }
        if (last.underline) { run.style.textDecoration = "underline"; }
      }
      run.textContent += cell[0];
    }, this);
    return line;
  };

  function element(name, classes, parent) {
    var made = document.createElement(name);
    if (classes) { made.className = classes; }
    if (parent) { parent.appendChild(made); }
    return made;
  }

  window.Terminal = Terminal;
}());
