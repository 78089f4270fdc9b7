// trunkline.js in Node, on Debian's node-ws: signalling without media. A JSON line for each event on stdout, commands on stdin:
// call NUMBER, answer, decline, end, drop (the socket breaks), path, logout, quit.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const [packageURL, url, ...tokens] = process.argv.slice(2);
const { Phone } = await import(packageURL);
const require = createRequire(import.meta.url);
const Socket = (() => { try { return require("ws"); } catch { return require("/usr/share/nodejs/ws"); } })();
const say = (event, more) => console.log(JSON.stringify({ event, at: Date.now(), ...more }));

/** A description that the gateway can read, of a browser that nobody reaches. */
const SDP = (setup) => ["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0", "m=audio 9 UDP/TLS/RTP/SAVPF 111 101", "c=IN IP4 0.0.0.0",
  "a=mid:0", "a=ice-ufrag:abcd", "a=ice-pwd:abcdefghijklmnopqrstuvwx", "a=fingerprint:sha-256 " + Array(32).fill("AB").join(":"), `a=setup:${setup}`,
  "a=rtcp-mux", "a=sendrecv", "a=rtpmap:111 opus/48000/2", "a=rtpmap:101 telephone-event/48000", ""].join("\r\n");
class Peer {
  constructor() { this.transceivers = []; }
  addTransceiver(kind, { direction }) { this.setup = "actpass"; return this.add(direction); }
  add(direction) {
    const transceiver = { direction, sender: { replaceTrack: async () => {} } };
    this.transceivers.push(transceiver);
    return transceiver;
  }
  getTransceivers() { return this.transceivers; }
  async setRemoteDescription({ type }) { if (type === "offer") { this.setup = "active"; this.add("recvonly"); } }
  async setLocalDescription() { this.localDescription = { sdp: SDP(this.setup) }; }
  async getStats() { return new Map(); }
  close() {}
}
const track = { stop() {}, readyState: "live", enabled: true };
const sockets = [];
class Counted extends Socket { constructor(...all) { super(...all); sockets.push(this); } }

const phone = new Phone(url, {
  token: () => { say("token"); return tokens.length > 1 ? tokens.shift() : tokens[0]; },
  WebSocket: Counted, RTCPeerConnection: Peer, microphone: async () => ({ getTracks: () => [track], getAudioTracks: () => [track] }),
  player: () => ({ play: async () => {}, stop() {} }), storage: null, mediaDevices: null,
});
let call;
function follow(next) {
  call = next;
  const tell = () => say("call", { id: call.id, state: call.state, phase: call.phase, reason: call.endReason, text: call.text, error: call.error?.code ?? null });
  call.addEventListener("state", tell);
  tell();
}
phone.addEventListener("state", () => say("phone", { state: phone.state, error: phone.error?.code ?? null, sockets: sockets.length, user: phone.user }));
phone.addEventListener("incoming", (event) => { say("incoming", { from: event.call.peer.h }); follow(event.call); });
for await (const line of createInterface({ input: process.stdin })) {
  const [word, more] = line.split(" ");
  if (word === "call") follow(phone.call(more));
  if (word === "answer") call.answer();
  if (word === "decline") call.decline();
  if (word === "end") call.end();
  if (word === "drop") sockets.at(-1).terminate();
  if (word === "logout") { await phone.logOut(); say("loggedOut"); }
  if (word === "quit") break;
}
phone.close();
say("closed");
process.stdin.destroy();
