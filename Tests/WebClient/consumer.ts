// An app in TypeScript: `tsc --strict` must take it, and refuse each line below a `@ts-expect-error`.
import { Call, CallState, EndReason, Phone, PhoneError, Push, Statistics, claims, readPush, reasonText } from "trunkline";

const push: Push | null = readPush("#push=…");
const phone = new Phone("wss://phone.example.com/v1/connect", { token: async () => "token", maximumCalls: 2, push });
phone.addEventListener("incoming", ({ call }) => { call.answer(); });
phone.addEventListener("gone", ({ id, reason }) => { const text: string = reasonText(reason); console.log(id, text); });
phone.addEventListener("registered", ({ error }) => console.log(error ?? "registered"));
const call: Call = phone.call("+15551230001", { from: "+15551230002" });
call.addEventListener("digit", ({ digit }) => console.log(digit.length));
call.addEventListener("statistics", () => { const values: Statistics | null = call.statistics; console.log(values?.jitterMs ?? 0); });

async function follow(): Promise<EndReason | null> {
  for await (const state of call.states) {
    const words: Record<CallState, string> = { ringing: "", connecting: "", calling: "", connected: "", reconnecting: "", held: "", ended: "" };
    console.log(words[state], call.seconds);
  }
  for await (const event of phone.events) console.log(event.type);
  return call.endReason;
}

async function during(other: Call): Promise<void> {
  call.mute(true); call.hold(true); call.hold(false);
  await call.sendDigits("12#");
  await call.transferWith(other);
  await call.transfer({ k: "phone", h: "+15551230003" });
  for (const device of await phone.microphones()) await phone.useMicrophone(device.deviceId);
  await phone.useLoudspeaker(null);
  try { await call.openMicrophone(); } catch (error) { if (error instanceof PhoneError) console.log(error.code, error.text, error.reason); }
  const fault: PhoneError | null = await phone.askForMicrophone();
  if (fault?.code === "microphoneDenied") console.log(fault.text);
  await phone.enablePush(await navigator.serviceWorker.register("/service-worker.js"));
  const { isReady, network } = await phone.preflight();
  console.log(isReady, network.error?.reason, phone.loudspeakerFallback?.text, call.called?.n, call.attestation, call.warnings[0]?.text);
  call.addEventListener("warning", ({ warning, isOn }) => console.log(warning.cause, isOn));
  phone.addEventListener("unreachable", ({ error }) => console.log(error.reason));
  phone.call("+15551230001", { parameters: { ticket: "7" } });
  await phone.logOut();
}

/** Headless, every part given. */
const headless = new Phone("ws://127.0.0.1:8080/v1/connect", {
  token: () => "token", log: ({ at, event }) => console.log(at, event), WebSocket, RTCPeerConnection, MediaStream,
  microphone: async (id) => navigator.mediaDevices.getUserMedia({ audio: id ? { deviceId: id } : true }),
  player: () => ({ async play(stream) { console.log(stream.id); }, stop() {} }),
  clock: { now: () => performance.timeOrigin + performance.now(), setTimeout: (f, ms) => setTimeout(f, ms), clearTimeout: (timer) => clearTimeout(timer as number) },
  random: Math.random, uuid: () => "id", storage: null, mediaDevices: null, window: null, document: null,
});

// @ts-expect-error: a state is read, not set
call.state = "connected";
// @ts-expect-error: there is no such state
if (phone.state === "offline") console.log();
// @ts-expect-error: calls are made by a phone
new Call();
// @ts-expect-error: a token is a function
new Phone("wss://phone.example.com/v1/connect", { token: "token" });
// @ts-expect-error: no such device method
phone.useCamera("id");
export { claims, during, follow, headless };
