// Why the WebSocket of a console has closed, in words: for our own page, and for those of others.
window.novaWhy = (function () {
  "use strict";

  // say(words, weight): a console of several connections has several closes, and the heaviest words are the best.
  function why(event, opened, say) {
    if (event.reason) { say(event.reason, 3); return; }
    if (opened) { say("The connection to the console was lost.", 2); return; }
    // a browser does not tell a page why a WebSocket was refused; the page's own address does
    fetch(location.href.replace(/#.*/, ""), { headers: { Accept: "text/plain" }, cache: "no-store" }).then(function (answer) {
      return answer.text().then(function (words) {
        say(answer.ok ? "The connection to the console failed. Reconnect to try again." : words.trim(), 2);
      });
    }).catch(function () { say("The console proxy does not answer. It may be restarting: reconnect in a moment.", 2); });
  }

  return why;
}());
