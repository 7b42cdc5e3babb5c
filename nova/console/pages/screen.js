// A server's screen with only noVNC's library: npm's package has no pages. session.js shows why it was closed.
import RFB from "../core/rfb.js";

const query = new URLSearchParams(location.search);
const title = query.get("title");
// `path` is the WebSocket's address, relative to this page's folder, as in noVNC's own pages
const address = new URL(query.get("path") || `?token=${encodeURIComponent(query.get("token") || "")}`, new URL("./", location.href));
address.protocol = location.protocol === "https:" ? "wss:" : "ws:";

const screen = new RFB(document.getElementById("screen"), address.href, { wsProtocols: ["binary"] });
screen.scaleViewport = true;
screen.addEventListener("connect", () => screen.focus());
screen.addEventListener("desktopname", (event) => { document.title = title || event.detail.name || "Screen"; });
