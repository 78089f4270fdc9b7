// trunkline.js as bench-client measures it. One JSON line a figure on stdout.
//
//   node Bench/web.mjs size                  bytes of the package, gzip -9: as it is served, and as a bundler ships it (esbuild, if installed)
//   node Bench/web.mjs left                  what a hundred calls leave behind, on the suite's fakes
//   node Bench/web.mjs tap PORT TOKEN COUNT  headless Chromium answers COUNT calls of the gateway at 127.0.0.1:PORT, its socket 100 ms round trip away
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(root, "Sources/Client/WebClient");
const say = (line) => console.log(JSON.stringify({ at: performance.timeOrigin + performance.now(), ...line }));
const packed = (bytes) => gzipSync(bytes, { level: 9 }).length;

function size() {
  const modules = readdirSync(folder).filter((name) => name.endsWith(".js") && name !== "service-worker.js");
  const served = packed(Buffer.concat(modules.map((name) => readFileSync(join(folder, name)))));
  // push.js is loaded by who wants pushes
  const bundle = (...more) => spawnSync("esbuild", ["--bundle", "--minify", "--format=esm", "--target=es2022", ...more, join(folder, "trunkline.js")]);
  const [whole, calls] = [bundle(), bundle("--external:./push.js")];
  const minified = whole.status === 0 ? { minified: packed(whole.stdout), calls: packed(calls.stdout) } : { minified: null, calls: null };
  say({ event: "size", served, ...minified, worker: packed(readFileSync(join(folder, "service-worker.js"))) });
}

async function left() {
  const { online, OFFER } = await import(join(root, "Tests/WebClient/phone.mjs"));
  let listeners = 0;
  const counted = (target) => {
    const { addEventListener, removeEventListener } = target;
    target.addEventListener = (...all) => { listeners++; addEventListener.apply(target, all); };
    target.removeEventListener = (...all) => { listeners--; removeEventListener.apply(target, all); };
    return target;
  };
  const rig = await online({ window: counted(new EventTarget()), document: counted(Object.assign(new EventTarget(), { visibilityState: "visible" })) });
  for (let number = 0; number < 100; number++) {
    const id = `7f0c2f0e-6a1d-4f0e-8f57-${String(number).padStart(12, "0")}`;
    const call = number % 2 ? await rig.talk(id) : await rig.dial();
    await rig.clock.advance(rig.clock.time + 2_000);
    await rig.tell("call.ended", call.id, { reason: "remoteHangup", from: OFFER.from });
    await rig.clock.advance(rig.clock.time + 4_000);
  }
  rig.phone.close();
  say({ event: "left", listeners, ...rig.left() });
}

/** TCP that takes its time, both ways. */
function delayed(port, milliseconds) {
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    for (const [from, to] of [[near, far], [far, near]]) {
      from.setNoDelay(true);
      from.on("data", (data) => setTimeout(() => to.writable && to.write(data), milliseconds));
      from.on("close", () => setTimeout(() => to.destroy(), milliseconds));
      from.on("error", () => {});
    }
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

/** In the page: answers each call as soon as its media is warm and the person has had a moment to look. */
const PAGE = `(async () => { const { Phone } = await import("/trunkline/trunkline.js");
  window.taps = [];
  window.phone = new Phone("ws://" + location.host + "/v1/connect", { token: () => TOKEN });
  phone.addEventListener("incoming", ({ call }) => { const look = setInterval(() => {
    if (call.peerConnection?.connectionState !== "connected") return;
    clearInterval(look);
    setTimeout(() => { taps.push(performance.timeOrigin + performance.now()); call.answer(); }, 500); }, 10); });
  await new Promise((done) => phone.addEventListener("state", () => { if (phone.state === "online") done(); }));
  await phone.askForMicrophone(); // as a page does before its first call
  return true; })()`;

async function tap(port, token, count) {
  const require = createRequire(import.meta.url);
  const Socket = (() => { try { return require("ws"); } catch { return require("/usr/share/nodejs/ws"); } })();
  const [relay, profile] = [await delayed(Number(port), 50), mkdtempSync(join(tmpdir(), "trunkline-chromium-"))];
  const chromium = spawn("chromium", ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--mute-audio",
    "--disable-background-networking", "--autoplay-policy=no-user-gesture-required", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
    "--allow-loopback-in-peer-connection", "--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank"], { stdio: ["ignore", "ignore", "pipe"], detached: true });
  process.once("SIGTERM", () => { try { process.kill(-chromium.pid, "SIGKILL"); } finally { process.exit(1); } });
  try {
    const devtools = await new Promise((done, fail) => {
      let text = "";
      chromium.stderr.on("data", (data) => { const found = /ws:\/\/(127\.0\.0\.1:\d+)\//.exec(text += data); if (found) done(found[1]); });
      chromium.on("exit", () => fail(new Error("chromium ended")));
    });
    const { webSocketDebuggerUrl } = await (await fetch(`http://${devtools}/json/new?about:blank`, { method: "PUT" })).json();
    const socket = new Socket(webSocketDebuggerUrl);
    await new Promise((done) => socket.on("open", done));
    let number = 0;
    const waiting = new Map();
    socket.on("message", (text) => { const answer = JSON.parse(text); waiting.get(answer.id)?.(answer.result); });
    const call = (method, params) => new Promise((done) => { waiting.set(++number, done); socket.send(JSON.stringify({ id: number, method, params })); });
    const evaluate = async (expression) => (await call("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true })).result?.value;
    await call("Page.navigate", { url: `http://127.0.0.1:${relay.address().port}/trunkline/texts.js` });
    while (!(await evaluate("document.readyState === 'complete' && location.protocol === 'http:'"))) await new Promise((done) => setTimeout(done, 50));
    if (!(await evaluate(PAGE.replace("TOKEN", JSON.stringify(token))))) throw new Error("the page did not log in");
    say({ event: "online" });
    for (let told = 0; told < Number(count);) {
      const taps = await evaluate("taps");
      for (; told < taps.length; told++) say({ event: "tap", number: told, at: taps[told] });
      await new Promise((done) => setTimeout(done, 20));
    }
    // until the last call is over, so that nothing of it is cut
    while (await evaluate("phone.calls.some((call) => call.state !== 'ended')")) await new Promise((done) => setTimeout(done, 20));
    socket.close();
  } finally {
    chromium.removeAllListeners("exit");
    const gone = new Promise((done) => chromium.on("exit", done));
    try { process.kill(-chromium.pid, "SIGTERM"); } catch { /* it is gone */ }
    await gone;
    relay.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

const [what, ...more] = process.argv.slice(2);
await { size, left, tap }[what](...more);
process.exit(0);
