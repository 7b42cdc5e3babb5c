// Reason why a console's WebSocket was closed, as a message: for nova's own page, and for those of libraries.
window.novaWhy = (function () {
  "use strict";

  // say(words, weight): a console with several connections is closed several times; the message with the most weight wins.
  function why(event, opened, say) {
    if (event.reason) { say(event.reason, 3); return; }
    if (opened) { say("The connection to the console was lost.", 2); return; }
    // a browser hides the reason of a refused WebSocket from the page; the page's own address returns it
    fetch(location.href.replace(/#.*/, ""), { headers: { Accept: "text/plain" }, cache: "no-store" }).then(function (answer) {
      return answer.text().then(function (words) {
        say(answer.ok ? "The connection to the console failed. Reconnect to try again." : words.trim(), 2);
      });
    }).catch(function () { say("The console proxy does not respond. It may be restarting: reconnect in a moment.", 2); });
  }

  return why;
}());
