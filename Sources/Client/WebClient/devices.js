// Microphones and loudspeakers: which are there, which is chosen, what hinders.
import { PhoneError, microphoneError } from "./texts.js";

const PROCESSING = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };

/** A microphone that ends as soon as it is opened is replaced once in so long. */
const REPLACE = 2_000;

export class Devices {
  fault = null;
  /** Why another one than the chosen serves: it is gone. It is taken back when it returns. */
  fallback = { microphone: null, loudspeaker: null };
  #replacedAt = -Infinity;
  #isOpening = false;
  /** One look at a time: a plug that moves says so several times. */
  #look = Promise.resolve();
  mayAsk = false;
  #permission = null;
  #stops = [];

  /** `given`: the app opens the microphone itself. */
  constructor(phone, seams, given) {
    Object.assign(this, { phone, seams, given });
    this.chosen = { microphone: this.#read("microphone"), loudspeaker: this.#read("loudspeaker") };
    const media = seams.mediaDevices;
    if (media?.addEventListener) this.#stops.push(seams.listen(media, "devicechange", () => this.check(true)));
    this.check();
  }

  /** Storage may be denied: the choice then lasts as long as the page. */
  #read(name) { try { return this.seams.storage?.getItem(`trunkline.${name}`) ?? null; } catch { return null; } }
  #write(name, id) {
    this.chosen[name] = id;
    try {
      if (id === null) this.seams.storage?.removeItem(`trunkline.${name}`); else this.seams.storage?.setItem(`trunkline.${name}`, id);
    } catch { /* not kept */ }
  }

  async open(id = this.chosen.microphone) {
    const { mediaDevices } = this.seams;
    if (this.given) return this.given(id);
    if (!mediaDevices?.getUserMedia) throw new PhoneError("microphoneInsecure");
    const audio = { ...PROCESSING, ...(id && { deviceId: { exact: id } }) };
    try {
      const stream = await mediaDevices.getUserMedia({ audio });
      this.#falls("microphone", false);
      // what hindered it before does not any more
      this.#set(null);
      return stream;
    } catch (error) {
      // the one chosen was unplugged: any other
      if (!id || !["OverconstrainedError", "NotFoundError"].includes(error?.name)) throw error;
      const stream = await mediaDevices.getUserMedia({ audio: PROCESSING });
      this.#falls("microphone", true);
      this.#set(null);
      return stream;
    }
  }

  /** Where calls are to be heard now. */
  get loudspeaker() { return this.fallback.loudspeaker ? null : this.chosen.loudspeaker; }

  #falls(name, isGone) {
    if (isGone === (this.fallback[name] !== null)) return;
    this.fallback[name] = isGone ? new PhoneError(`${name}Gone`) : null;
    this.seams.log("device", { name, isGone });
    this.phone.emit("devices");
  }

  async ask() {
    try {
      for (const track of (await this.open()).getTracks()) track.stop();
      this.#set(null);
    } catch (error) {
      this.#set(microphoneError(error));
    }
    await this.check();
    return this.fault;
  }

  failed(fault) { if (fault?.code?.startsWith("microphone")) this.#set(fault); }

  #set(fault) {
    if (this.fault?.code === fault?.code) return;
    this.fault = fault;
    this.phone.emit("devices");
  }

  async #query() {
    if (this.#permission) return this.#permission;
    const permission = await this.seams.permissions?.query({ name: "microphone" }).catch(() => null);
    if (permission && !this.#permission && !this.isClosed) {
      this.#permission = permission;
      if (permission.addEventListener) this.#stops.push(this.seams.listen(permission, "change", () => this.check(true)));
    }
    return this.#permission;
  }

  async isDenied() { return (await this.#query())?.state === "denied"; }

  /** What is known without asking the user; with `isNews` calls without a microphone try again. */
  check(isNews = false) { return this.#look = this.#look.then(() => this.#check(isNews)).catch(() => {}); }

  async #check(isNews) {
    if (this.isClosed) return;
    const { mediaDevices } = this.seams;
    if (!mediaDevices) return this.given ? undefined : this.#set(new PhoneError("microphoneInsecure"));
    const list = await Promise.resolve(mediaDevices.enumerateDevices?.()).catch(() => null) ?? null;
    if (Array.isArray(list)) await this.#followLoudspeaker(list);
    if (this.given || this.isClosed) return;
    const permission = await this.#query();
    if (this.isClosed) return;
    this.mayAsk = permission?.state === "prompt";
    const isAbsent = list && !list.some((device) => device.kind === "audioinput");
    const code = isAbsent ? "microphoneAbsent" : permission?.state === "denied" ? "microphoneDenied" : null;
    this.#set(code && new PhoneError(code));
    this.phone.emit("devices");
    // not waited for: the browser may ask the person
    if (isNews && !code && list) this.#followMicrophone(list);
  }

  #live() { return this.phone.calls.filter((call) => !call.isOver); }

  /** A loudspeaker that is gone: Firefox plays on into nothing. */
  async #followLoudspeaker(list) {
    const id = this.chosen.loudspeaker;
    const isGone = isMissing(list, "audiooutput", id);
    if (isGone === (this.fallback.loudspeaker !== null)) return;
    const moved = await Promise.allSettled(this.#live().map((call) => call.media.useLoudspeaker(isGone ? null : id)));
    // back, and not ready yet: the next change is looked at again
    if (id !== this.chosen.loudspeaker || (!isGone && moved.some(({ status }) => status === "rejected"))) return;
    this.#falls("loudspeaker", isGone);
  }

  /** Calls without one try again; the one chosen is taken back; one that is gone is replaced, also where its track says nothing of it. */
  async #followMicrophone(list) {
    if (this.#isOpening) return;
    this.#isOpening = true;
    const isBack = this.fallback.microphone !== null && !isMissing(list, "audioinput", this.chosen.microphone);
    if (isBack) this.#falls("microphone", false);
    for (const call of this.#live()) {
      const [track] = call.localStream?.getAudioTracks() ?? [];
      const isUnplugged = !!track && isMissing(list, "audioinput", track.getSettings?.().deviceId ?? null);
      if (call.microphoneFault || (track && (isBack || isUnplugged))) await call.openMicrophone().catch(() => {});
    }
    this.#isOpening = false;
  }

  /** The call's microphone has ended, and nobody has forbidden it: any other that is there. */
  async replace(call) {
    const now = this.seams.clock.now();
    if (this.given || now - this.#replacedAt < REPLACE || !(await this.list("audioinput")).length || call.isOver) return;
    this.#replacedAt = now;
    await call.openMicrophone().catch(() => {});
  }

  async list(kind) {
    const list = await Promise.resolve(this.seams.mediaDevices?.enumerateDevices?.()).catch(() => null);
    return (Array.isArray(list) ? list : []).filter((device) => device.kind === kind);
  }

  async useMicrophone(id) {
    const last = this.chosen.microphone;
    this.#write("microphone", id);
    try {
      const open = this.phone.calls.filter((call) => call.localStream);
      for (const call of open) await call.openMicrophone();
    } catch (error) {
      this.#write("microphone", last);
      throw error;
    }
    this.phone.emit("devices");
    this.#lookAgain();
  }

  async useLoudspeaker(id) {
    const moved = [], before = this.loudspeaker;
    try {
      for (const call of this.#live()) {
        await call.media.useLoudspeaker(id);
        moved.push(call);
      }
    } catch (error) {
      // one refuses: all calls stay where they were heard
      await Promise.allSettled(moved.map((call) => call.media.useLoudspeaker(before)));
      throw error;
    }
    this.#write("loudspeaker", id);
    this.fallback.loudspeaker = null;
    this.phone.emit("devices");
    this.#lookAgain();
  }

  /** What was unplugged while it was being set was not the chosen one yet when the browser said so. */
  #lookAgain() { this.check(true); }

  close() {
    this.isClosed = true;
    for (const stop of this.#stops.splice(0)) stop();
  }
}

/** Before the microphone was allowed once a browser names no device: then none is missing. */
function isMissing(list, kind, id) {
  return id !== null && list.some((device) => device.deviceId) && !list.some((device) => device.kind === kind && device.deviceId === id);
}
