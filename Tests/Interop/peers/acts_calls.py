"""Calls in the web phone, for phone_acts.py: how they end, what is noticed, what the keyboard does."""

FRONT = "trunkline.calls.at(-1)"


def dials(person, number="5551234"):
    """By keyboard alone."""
    person.sees("document.activeElement?.id === 'number'", "the number has the keyboard")
    person.types(number)
    person.key("Enter")
    person.sees("trunkline.calls.length === 1", "it is dialled")


# reason, error, words, tone
ENDS = [
    ("busy", None, "Busy", "480+620"),
    ("declined", None, "Declined", "480+620"),
    ("notFound", None, "This number does not exist", "480+620"),
    ("trunkFailed", None, "The telephone network could not connect the call", "480+620"),
    ("forbidden", None, "This call is not allowed", "480+620"),
    ("forbidden", "emergency", "Emergency numbers cannot be called here", "480+620"),
    ("unanswered", None, "No answer", ""),
]


def ends_leave_a_card(person):
    for reason, error, words, tone in ENDS:
        person.opens()
        dials(person)
        person.not_lost(f"while {reason} is dialled")
        person.js(f"{FRONT}.set({{ phase: 'progress', progress: 'ringing' }})")
        person.sounds("440+480")
        person.js(f"{FRONT}.finish('{reason}', {'fake.error(' + repr(error) + ')' if error else 'null'})")
        person.reads("ended", words)
        person.reads("ended", "5551234")
        person.hears(words)
        person.sounds(tone)
        person.not_lost(f"after {reason}")
        person.driver.mouse(3, 3)
        person.sounds("")
        person.sees("trunkline.calls.length === 0", "the package drops it")
        person.reads("ended", words)
        person.clicks("again-0")
        person.sees(f"{FRONT}?.phase === 'starting' && {FRONT}.peer.h === '5551234'", "call again calls again")
        person.hidden("ended")
        person.not_lost("after call again")


def a_busy_tone_stops_by_itself_and_by_a_key(person):
    person.opens()
    dials(person)
    person.js(f"{FRONT}.finish('busy')")
    person.sounds("480+620")
    person.key("Tab")
    person.sounds("")
    person.key("Escape")
    person.hidden("ended")
    person.not_lost("after the card is closed")
    person.sees("trunkline.calls.length === 0", "the package drops it")
    person.js("document.getElementById('number').value = ''; document.getElementById('number').focus()")
    dials(person)
    person.js(f"{FRONT}.finish('busy')")
    person.sounds("480+620")
    person.sounds("", 20)


def a_call_that_is_lost_says_why(person):
    person.opens("connected")
    person.js("fake.set({ isReachable: false, state: 'connecting' })")
    person.js(f"{FRONT}.finish('unknown')")
    person.reads("ended", "Ada Lovelace")
    person.reads("ended", "gateway")
    person.js("fake.set({ isReachable: true, state: 'online' })")
    person.hidden("notice")
    person.clicks("dismiss-0")
    person.hidden("ended")
    person.not_lost("after the card is dismissed")


def a_call_that_a_restarted_gateway_does_not_know_says_why(person):
    person.opens("connected")
    person.js("fake.set({ isReachable: false, state: 'connecting' }); fake.set({ isReachable: true, state: 'online' }); 0")
    person.js(f"{FRONT}.finish('unknown')")
    person.reads("ended", "The gateway could not be reached, and the call ended")
    # over a reload
    person.opens("connected")
    person.js(f"{FRONT}.mute(true)")
    person.driver.go("/?state=idle#token=t")
    person.reads("ended", "The gateway could not be reached, and the call ended")


def a_call_of_an_earlier_load_that_is_gone_leaves_a_card(person):
    person.opens()
    person.js("fake.gone('h1', 'gatewayRestart')")
    person.reads("ended", "The gateway restarted")
    person.reads("ended", "Ada Lovelace")
    person.hidden("notice")


def a_notice_goes_when_it_is_not_true(person):
    person.opens("connected")
    person.js("fake.set({ microphoneFault: fake.error('microphoneBusy') }, 'devices')")
    person.reads("notice", "Another program uses the microphone")
    person.js("fake.set({ microphoneFault: null }, 'devices')")
    person.hidden("notice")
    person.sees("!document.getElementById('announce').textContent.includes('Another program')", "nor is it left for a screen reader")
    person.js(f"{FRONT}.transfer = () => Promise.reject({{ text: 'Not now.' }}); 0")
    person.clicks("transfer")
    person.types("5550000")
    person.clicks("dial")
    person.reads("notice", "The transfer failed")
    person.js(f"{FRONT}.finish('remoteHangup')")
    person.hidden("notice")
    person.opens("login-refused")
    person.reads("notice", "Log in again")
    person.clicks("token")
    person.types("x")
    person.hidden("notice")


def who_types_when_it_rings_does_not_answer(person):
    person.opens()
    person.sees("document.activeElement?.id === 'number'", "the number has the keyboard")
    person.types("55")
    person.js("fake.ring('+15557770042', { n: 'Grace Hopper' })")
    person.shown("answer")
    person.not_lost("when a call rings while one types")
    person.types("5")
    person.key("Enter")
    person.key(" ")
    person.sees(f"{FRONT}.phase === 'ringing'", "typed keys do not answer")
    person.key("a")
    person.sees(f"{FRONT}.phase === 'connected'", "the shortcut answers")
    person.not_lost("after it is answered by a key")
    person.key("x")
    person.sees(f"{FRONT}.phase === 'ended'", "the shortcut hangs up")
    person.not_lost("after it is hung up by a key")


def shortcuts_are_written_and_work(person):
    person.opens("ringing")
    person.stays("answer")
    person.expects(person.js("document.getElementById('answer').getAttribute('aria-keyshortcuts')") == "a", "Answer has no aria-keyshortcuts")
    person.reads("keys", "Answer")
    person.key("a", 2)
    person.key("a", 1)
    person.sees(f"{FRONT}.phase === 'ringing'", "with a modifier it is another's shortcut")
    person.key("a")
    person.sees(f"{FRONT}.phase === 'connected'", "A answers")
    person.stays("mute")
    for key, name in [("m", "isMuted"), ("h", "isHeld")]:
        person.key(key)
        person.sees(f"{FRONT}.{name}", f"{key} throws {name}")
        person.key(key)
        person.sees(f"!{FRONT}.{name}", f"{key} throws {name} back")
    for words in ("Mute", "Hold", "Hang up"):
        person.reads("keys", words)
    person.clicks("add")
    person.stays("number")
    person.types("mhx")
    person.sees(f"{FRONT}.phase === 'connected' && !{FRONT}.isMuted && !{FRONT}.isHeld", "letters typed in a field are no shortcuts")
    person.key("Escape")
    person.hidden("dialer")
    person.stays("add")
    person.key("x")
    person.sees(f"{FRONT}.phase === 'ended'", "X hangs up")
    person.not_lost("after X")


def shortcuts_can_be_switched_off(person):
    person.opens("connected")
    person.clicks("audio")
    person.clicks("shortcuts")
    person.key("Escape")
    person.hidden("settings")
    person.stays("audio")
    person.key("m")
    person.key("x")
    person.sees(f"{FRONT}.phase === 'connected' && !{FRONT}.isMuted", "switched off")
    person.hidden("keys")


def escape_closes_what_is_open(person):
    person.opens("connected")
    for opener, what in [("pad", "keypad"), ("add", "dialer"), ("transfer", "dialer"), ("audio", "settings")]:
        person.clicks(opener)
        person.shown(what)
        person.not_lost(f"with {what} open")
        person.key("Escape")
        person.hidden(what)
        person.stays(opener)
    person.sees(f"{FRONT}.phase === 'connected'", "the call goes on")


def a_call_that_rings_closes_the_settings(person):
    person.opens()
    person.clicks("open-settings")
    person.shown("settings")
    person.js("fake.ring('+15557770042')")
    person.hidden("settings")
    person.not_lost("when a call rings over the settings")
    person.clicks("answer")
    person.sees(f"{FRONT}.phase === 'connected'", "it can be answered")


def cleared_calls_come_back(person):
    person.opens()
    rows = "document.querySelectorAll('#history li').length"
    before = person.js(rows)
    person.expects(before > 0, "there are calls of before")
    person.js("document.getElementById('clear').focus()")
    person.key("Enter")
    person.sees(f"{rows} === 0", "cleared")
    person.not_lost("after Clear")
    person.stays("undo")
    person.key("Enter")
    person.sees(f"{rows} === {before}", "undone")
    person.not_lost("after Undo")
    person.hidden("undo")


def a_storage_that_is_full_is_no_fault(person):
    person.opens()
    person.js("Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }; 0")
    person.js("fake.ring('+15557770042', { n: 'Grace Hopper' }); 0")
    person.clicks("answer")
    person.sees(f"{FRONT}.phase === 'connected'", "answered")
    person.clicks("hangup")
    person.reads("history", "Grace Hopper")
    person.reads("history", "You hung up")


def a_reconnecting_call_says_so(person):
    person.opens("connected")
    person.js(f"{FRONT}.set({{ isReconnecting: true }})")
    person.reads("words", "Reconnecting")
    person.hears("Reconnecting")
    person.reads("notice", "No audio")
    person.js("globalThis.before = document.getElementById('clock').textContent; new Promise((done) => setTimeout(done, 1500))")
    person.sees("document.getElementById('clock').textContent === before && before !== ''", "the clock stands")
    person.expects(not person.js("/loss 0/.test(document.body.innerText)"), "no loss is claimed while nothing arrives")
    person.js(f"{FRONT}.set({{ isReconnecting: false }})")
    person.reads("words", "Connected")
    person.hidden("notice")


VERSIONED = """{ const real = fetch; window.version = '0123456789abcdef';
  window.fetch = (url, ...all) => (String(url).endsWith('version') ? Promise.resolve(new Response(window.version)) : real(url, ...all)); } 0"""


def a_gateway_that_was_upgraded_is_said_outside_of_calls(person):
    comes_back = "fake.set({ state: 'connecting', isReachable: false }); fake.set({ state: 'online', isReachable: true }); 0"
    person.opens("connected")
    person.js(VERSIONED)
    for _ in range(2):
        person.js(comes_back)
    person.hidden("notice")
    person.js("window.version = 'fedcba9876543210'; " + comes_back)
    person.js("new Promise((done) => setTimeout(done, 300))")
    person.hidden("notice")
    person.js(f"{FRONT}.finish('remoteHangup')")
    person.reads("notice", "new version")
    person.js("window.isOld = true")
    person.clicks("notice-act")
    person.sees("!window.isOld && document.readyState === 'complete'", "it is loaded")


ACTS = [
    ends_leave_a_card, a_call_that_a_restarted_gateway_does_not_know_says_why, a_busy_tone_stops_by_itself_and_by_a_key, a_call_that_is_lost_says_why, a_call_of_an_earlier_load_that_is_gone_leaves_a_card,
    a_notice_goes_when_it_is_not_true, who_types_when_it_rings_does_not_answer, shortcuts_are_written_and_work, shortcuts_can_be_switched_off,
    escape_closes_what_is_open, a_call_that_rings_closes_the_settings, cleared_calls_come_back, a_storage_that_is_full_is_no_fault,
    a_reconnecting_call_says_so, a_gateway_that_was_upgraded_is_said_outside_of_calls,
]
