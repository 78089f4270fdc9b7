"""Devices in the web phone, for phone_acts.py: tests, the bell, a microphone that is missing, notifications."""
from acts_calls import FRONT

LEVEL = "document.getElementById('microphone-level')"


def the_microphone_is_tested_before_a_call(person):
    person.opens()
    person.clicks("open-settings")
    person.hidden("microphone-level")
    person.clicks("test-microphone")
    person.shown("microphone-level")
    person.sees(f"{LEVEL}.value > -45", "its level is seen", 10)
    person.js("navigator.mediaDevices.getUserMedia = () => { throw new Error('not again'); }; 0")
    person.clicks("test-microphone")
    person.hidden("microphone-level")
    person.reads("test-microphone", "Test the microphone")


def the_microphone_is_seen_in_a_call(person):
    person.opens("connected")
    person.js(f"navigator.mediaDevices.getUserMedia({{ audio: true }}).then((stream) => {{ {FRONT}.set({{ localStream: stream }}); }})")
    person.clicks("audio")
    person.shown("microphone-level")
    person.hidden("test-microphone")
    person.sees(f"{LEVEL}.value > -45", "its level is seen", 10)
    person.js("document.getElementById('microphone').value = 'm1'; document.getElementById('microphone').dispatchEvent(new Event('change'))")
    person.sees("trunkline.microphone === 'm1'", "it is changed in the call")


# without a sound card Firefox runs no AudioContext
for act in (the_microphone_is_tested_before_a_call, the_microphone_is_seen_in_a_call):
    act.isChromiumOnly = True


def the_loudspeaker_and_the_bell_are_tried(person):
    person.opens()
    person.js("trunkline.loudspeaker = 'l0'; 0")
    person.clicks("open-settings")
    person.clicks("test-loudspeaker")
    person.sounds("523+659")
    person.sees("sinks.includes('l0')", "on the chosen loudspeaker")
    person.sounds("")
    person.js("sinks.length = 0; document.getElementById('ringer').value = 'l0'; document.getElementById('ringer').dispatchEvent(new Event('change'))")
    person.sounds("587+740")
    person.sees("sinks.includes('l0')", "the bell's device")
    person.sounds("")
    person.js("document.getElementById('ring-volume').focus()")
    for _ in range(4):
        person.key("ArrowRight")
    person.sounds("587+740")
    person.sees("Math.abs(contexts.at(-1).loudest - 0.06 * 70 / 50) < 0.001", "as loud as was set")
    person.sounds("")
    person.key("Escape")
    person.js("contexts.length = 0; sinks.length = 0; fake.ring('+15557770042'); 0")
    person.sounds("587+740")
    person.sees("sinks.includes('l0') && Math.abs(contexts.at(-1).loudest - 0.084) < 0.001", "a call rings there, as loud")


def a_call_that_cannot_be_answered_says_what_to_do(person):
    for code, words in [("microphoneDenied", "Allow it"), ("microphoneAbsent", "Connect one"), ("microphoneBusy", "Close it"), ("microphoneInsecure", "https")]:
        person.opens("ringing")
        person.stays("answer")
        # taken away while it rings
        person.js(f"fake.set({{ microphoneFault: fake.error('{code}') }}, 'devices')")
        person.hidden("answer")
        person.reads("notice", words)
        person.reads("notice", "cannot be answered")
        person.shown("hangup")
        person.not_lost(f"when it is taken away: {code}")
        person.key("a")
        person.sees(f"{FRONT}.phase === 'ringing'", f"no key answers: {code}")
        if code != "microphoneInsecure":
            person.clicks("notice-act")
            person.sees("trunkline.asked === 1", "it is tried again")
        person.js("fake.set({ microphoneFault: null }, 'devices')")
        person.hidden("notice")
        person.clicks("answer")
        person.sees(f"{FRONT}.phase === 'connected'", f"and answered: {code}")
    person.opens("waiting")
    person.js("fake.set({ microphoneFault: fake.error('microphoneDenied') }, 'devices')")
    person.hidden("hold-accept", "end-accept")
    person.shown("waiting-decline")


NOTIFIES = """Object.defineProperty(Notification, 'permission', { value: 'granted' }); document.hasFocus = () => false;
window.shown_ = []; ServiceWorkerRegistration.prototype.showNotification = async (title, options) => { shown_.push({ title, ...options }); };
ServiceWorkerRegistration.prototype.getNotifications = async () => []; 0"""


def a_notification_has_answer_and_decline(person):
    for action, phase in [("answer", "connected"), ("decline", "ended"), ("", "ringing")]:
        person.opens()
        person.js(NOTIFIES)
        person.js("fake.ring('+15557770042', { n: 'Grace Hopper' }); 0")
        person.sees("shown_.length === 1 && shown_[0].title.includes('Grace Hopper')", "it is shown")
        person.expects(person.js("shown_[0]?.actions.map(({ action, title }) => action + title).join()") == "answerAnswer,declineDecline", "its buttons")
        person.js(f"navigator.serviceWorker.dispatchEvent(new MessageEvent('message', {{ data: {{ trunkline: 'notification', call: shown_[0].data.call, action: '{action}' }} }}))")
        person.sees(f"{FRONT}.phase === '{phase}'", f"{action or 'a click'} on it")


ACTS = [
    the_microphone_is_tested_before_a_call, the_microphone_is_seen_in_a_call, the_loudspeaker_and_the_bell_are_tried,
    a_call_that_cannot_be_answered_says_what_to_do, a_notification_has_answer_and_decline,
]
