// Trying devices from the settings: the microphone's level, before a call and in it, and what the loudspeaker and the bell sound like.
import { ringOnce } from "./bell.js";
import { chosen } from "./calls.js";
import { t } from "./language.js";
import { levelOf } from "./meters.js";
import { $, app, show } from "./page.js";
import { chooseRinger, ringVolume, ringer, sample, setRingVolume } from "./tones.js";
import { write } from "./ui/elements.js";

/** The microphone that was opened for a test, and what reads its level. */
let stream = null, meter = null, measured = null, opening = 0;

const ofCall = () => chosen().live.find((call) => call.localStream)?.localStream ?? null;

/** What is measured now: the call's microphone, or the one of a test. */
export function showLevel() {
  const source = $("settings").open ? ofCall() ?? stream : null;
  if (stream && (!$("settings").open || source !== stream)) release();
  show("microphone-level", !!source);
  show("test-microphone", !ofCall());
  write($("test-microphone"), t(stream ? "settings.endTest" : "settings.testMicrophone"));
  if (source === measured) return;
  meter?.stop();
  measured = source;
  meter = source && levelOf(source, (level) => { $("microphone-level").value = Math.max(-60, level); });
}

function release() {
  opening++;
  for (const track of stream?.getTracks() ?? []) track.stop();
  stream = null;
}

/** From a click. The reason, where it cannot be opened. */
async function test() {
  if (stream) {
    release();
    return null;
  }
  const turn = ++opening;
  try {
    const opened = await app.phone.openMicrophone();
    // closed meanwhile, or a call has begun
    if (turn !== opening || !$("settings").open) for (const track of opened.getTracks()) track.stop(); else stream = opened;
    return null;
  } catch (error) {
    return error;
  }
}

/** Another microphone was chosen: the test goes on with that one. */
export async function testAgain() {
  if (!stream) return;
  release();
  await test();
  showLevel();
}

export function endProbes() {
  release();
  sample.stop();
  showLevel();
}

export function wireProbes(failed) {
  $("test-microphone").onclick = async () => {
    failed(await test());
    showLevel();
  };
  $("test-loudspeaker").onclick = () => sample.startFor(1.8);
  $("ringer").onchange = (event) => {
    chooseRinger(event.target.value || null);
    ringOnce();
  };
  $("ring-volume").oninput = (event) => setRingVolume(event.target.value);
  $("ring-volume").onchange = () => ringOnce();
  $("test-ring").onclick = () => ringOnce();
}

/** The bell's device among those that are there; `fillSelect` is the settings'. */
export function showRinger(loudspeakers, fillSelect) {
  fillSelect("ringer", loudspeakers, ringer(), "settings.loudspeakerNumber");
  $("ring-volume").value = ringVolume();
  show("ringer-field", loudspeakers.length > 0);
}

/** Empty, or that the bell's device is gone. */
export const ringerWords = (loudspeakers) => (ringer() && loudspeakers.length && !loudspeakers.some(({ deviceId }) => deviceId === ringer()) ? t("settings.ringerGone") : "");
