"""More than one call in the web phone, for phone_acts.py: calls that wait, merged calls, names, and the order that a screen reader walks in."""
from acts_calls import FRONT

IN_VIEW = """(() => { const at = document.getElementById('hangup'), box = at.getBoundingClientRect();
  return at.checkVisibility() && box.top >= 0 && box.bottom <= innerHeight && at.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)); })()"""
CALLS = ["connected", "calling", "setting-up", "muted", "held", "keypad", "waiting", "two-calls", "two-ringing", "add-call", "transfer", "settings-in-call",
         "permission-revoked-in-call", "gateway-gone-in-call", "ringing", "ringing-long", "connected-long", "merged"]


def a_second_call_is_spoken_at_once(person):
    person.opens("connected")
    person.js("spoken.length = 0")
    person.js("fake.ring('+15557770042', { n: 'Grace Hopper' }); 0")
    person.hears("Grace Hopper is calling", isAssertive=True)
    person.shown("waiting")
    person.not_lost("while a second call rings")
    person.js("spoken.length = 0")
    person.js(f"{FRONT}.finish('callerCancelled')")
    person.sees("document.getElementById('alert').textContent === ''", "what is over is not left in the region")
    person.hears("Grace Hopper: The caller hung up")
    person.expects(not person.js("spoken.some(({ text }) => text.includes('Ada Lovelace'))"), "nothing is said of the call that continues")


def a_call_is_spoken_from_its_ring_to_its_end(person):
    """As Orca reads it in Chromium (docs/design/web-phone.md)."""
    person.opens("idle")
    for _ in range(2):
        person.js("spoken.length = 0")
        person.js("fake.ring('+15557770001', { n: 'Ada Lovelace', called: { k: 'phone', h: '+15551230001', n: 'Sales' } }); 0")
        person.hears("Ada Lovelace is calling for Sales")
        person.key("a")
        person.hears("Ada Lovelace: Connected")
        person.js(f"{FRONT}.finish('remoteHangup')")
        # the second time, too
        person.hears("Ada Lovelace: They hung up")
        person.js("trunkline.calls.forEach((one) => fake.drop(one))")


def hang_up_is_in_view(person):
    def at_each_size(what):
        for width, height in [(375, 667), (640, 360), (1280, 720)]:
            person.driver.resize(width, height)
            person.sees(IN_VIEW, f"Hang up is in view {what} at {width} × {height}", 2)

    for state in CALLS:
        person.opens(state, 375, 667)
        at_each_size(f"in {state}")
    person.opens("keypad", 375, 667)
    person.js("fake.ring('+15557770042', { n: 'Grace Hopper' }); 0")
    person.shown("waiting", "keypad")
    at_each_size("with keypad and waiting call")
    person.js("scrollTo(0, 1e6)")
    at_each_size("at the page's end")


hang_up_is_in_view.isChromiumOnly = True


def merged_calls_have_a_row_for_each(person):
    person.opens("two-calls")
    person.js("trunkline.calls.forEach((one) => one.set({ capabilities: { hold: true, dtmf: true, transfer: true, group: true } }))")
    person.clicks("merge")
    person.sees("document.querySelectorAll('#people li').length === 2", "a row for each")
    person.reads("people", "Ada Lovelace")
    person.reads("people", "+1 555 777 0042")
    person.reads("hangup", "Hang up all")
    person.not_lost("after merging")
    person.js("document.querySelector('#people li button').focus()")
    person.key("Enter")
    person.sees("trunkline.calls.filter((one) => one.phase === 'connected').length === 1", "one is hung up")
    person.not_lost("after one of them is hung up")
    person.hidden("people")
    person.sees("document.getElementById('hangup').textContent.trim() === 'Hang up'", "one is left")
    person.opens("merged")
    person.clicks("hangup")
    person.sees("trunkline.calls.every((one) => one.phase === 'ended')", "all are hung up")
    person.not_lost("after all are hung up")


def ten_calls_wait(person):
    person.opens("connected", 375, 667)
    person.js("for (let n = 0; n < 10; n++) fake.ring(`+1555777010${n}`, { n: `Caller ${n}` }); 0")
    person.sees("document.querySelectorAll('#queue li').length === 9", "nine rows beside the first")
    person.sees(IN_VIEW, "Hang up is in view")
    person.hears("10 calls are waiting", isAssertive=True)
    person.js("document.querySelectorAll('#queue li')[8].querySelector('button').click()")
    person.sees("trunkline.calls.find((one) => one.peer.n === 'Caller 9').phase === 'connected'", "any of them is answered")
    person.sees("trunkline.calls.filter((one) => one.phase !== 'ended').length === 11", "no call is lost")
    person.reads("peer", "Caller 9")
    person.reads("other", "Ada Lovelace")
    person.js("trunkline.calls.find((one) => one.phase === 'ringing').answer()")
    person.sees("document.querySelectorAll('#held li').length === 1", "a row for each further call on hold")
    person.js("document.querySelector('#held li button').click()")
    person.sees("document.getElementById('peer').textContent !== 'Caller 0'", "it can be taken again")


NAMES = {
    "long": "'x'.repeat(500)", "markup": "'<img src=x onerror=alert(1)><b>Eve</b>'", "marked": "'Z' + '\\u0301'.repeat(400) + 'algo'",
    "turned": "'\\u202eevE\\u202c'", "blank": "' \\u200b\\u0000 '",
}


def names_are_shown_as_text_and_cut(person):
    for what, name in NAMES.items():
        person.opens("connected", 375, 667)
        person.js(f"fake.ring('+15557770042', {{ n: {name} }}); 0")
        person.shown("waiting")
        person.sees(IN_VIEW, f"Hang up is in view with a {what} name")
        person.expects(not person.js("!!document.querySelector('#waiting img, #waiting b')"), f"{what}: markup is markup")
        person.expects(person.js("document.getElementById('waiting').getBoundingClientRect().height < 300"), f"{what}: the card is too high")
        person.expects(person.js("[...document.getElementById('waiting-who').textContent].length <= 120"), f"{what}: not cut")
        person.expects(person.js("!/[\\u202a-\\u202e\\u2066-\\u2069\\0]/.test(document.getElementById('waiting-who').textContent)"), f"{what}: direction marks are left")
        person.expects(person.js("!/\\p{M}{5}/u.test(document.getElementById('waiting-who').textContent)"), f"{what}: marks pile up")
        if what == "blank":
            person.reads("waiting-who", "+1 555 777 0042")
        person.js(f"{FRONT}.answer()")
        person.sees(IN_VIEW, f"Hang up is in view in a call with a {what} name")
        person.expects(person.js("document.documentElement.scrollWidth <= innerWidth"), f"{what}: the page scrolls sideways")


def order(person, tree, expected):
    at = 0
    for one in expected:
        found = next((i for i in range(at, len(tree)) if tree[i].startswith(one)), None)
        if found is None:
            person.faults.append(f"{one!r} does not come after {tree[max(0, at - 1)]!r}: {tree}")
            return
        at = found + 1


def a_screen_reader_walks_in_order(person):
    tree = person.driver.tree
    person.opens("ringing")
    order(person, tree(), ["heading Trunkline", "region Call", "button Answer", "button Decline"])
    person.opens("waiting")
    order(person, tree(), ["heading Trunkline", "region Grace Hopper", "button Hold & accept", "button End & accept", "button Decline", "region Call", "button Mute",
                           "button Keypad", "button Audio", "button Hold", "button Hang up", "heading Recent calls"])
    person.opens("merged")
    order(person, tree(), ["region Call", "listitem", "button Hang up Ada Lovelace", "listitem", "button Hang up +1 555 777 0042", "button Hang up all"])
    person.opens()
    person.js("trunkline.call('5551234').finish('busy')")
    person.shown("ended", "dialer")
    order(person, tree(), ["region Call ended", "button Call 5551234 again", "button Dismiss", "heading Make a call", "textbox Number", "button Call"])


a_screen_reader_walks_in_order.isChromiumOnly = True

def tabs_to(person, id, back=False):
    """By Tab alone; `back`: with Shift."""
    tabs_until(person, f"document.activeElement?.id === '{id}'", id, back)


def tabs_until(person, condition, what, back=False):
    for _ in range(60):
        if person.js(f"!!({condition})"):
            return
        person.key("Tab", 8 if back else 0)
    person.faults.append(f"Tab does not come to {what}")


ROW = "document.activeElement?.matches('#history li .call') && document.activeElement.closest('li')"
YESTERDAY = "new Intl.DateTimeFormat('en-US', { day: 'numeric', month: 'short' }).format(Date.now() - 864e5)"


def a_newcomer_does_all_by_keyboard(person):
    """From the login link: allows the microphone, takes a call, moves it to a headset, merges a second one, separates and transfers it, finds
    yesterday's missed call and calls back."""
    can = "{ hold: true, dtmf: true, transfer: true, group: true }"
    person.opens("history", 400, 860)
    person.js("fake.set({ mayAskForMicrophone: true }, 'devices')")
    person.shown("setup")
    tabs_to(person, "allow", back=True)
    person.key("Enter")
    person.sees("trunkline.asked === 1", "the microphone is asked for")
    person.js("fake.set({ mayAskForMicrophone: false }, 'devices')")
    person.hidden("setup")
    person.not_lost("once the microphone is allowed")
    person.sees("document.title === 'Trunkline phone'", "the title names the page")
    person.js(f"fake.ring('+15557770001', {{ n: 'Ada Lovelace', capabilities: {can} }}); 0")
    person.stays("answer")
    person.key("Enter")
    person.sees(f"{FRONT}.phase === 'connected'", "Enter answers")
    tabs_to(person, "audio")
    person.key("Enter")
    person.shown("settings")
    tabs_to(person, "microphone")
    person.key("U")  # of a list that is closed a letter chooses
    person.sees("trunkline.microphone === 'm1'", "the headset is chosen")
    person.key("Escape")
    person.hidden("settings")
    person.js(f"fake.ring('+15557770042', {{ n: 'Grace Hopper', capabilities: {can} }}); 0")
    person.shown("waiting")
    person.key("a")
    person.sees(f"{FRONT}.phase === 'connected' && trunkline.calls[0].isHeld", "A takes the second, the first is held")
    tabs_to(person, "merge")
    person.key("Enter")
    person.reads("people", "Grace Hopper")
    tabs_to(person, "merge")
    person.key("Enter")
    person.hidden("people")
    person.js("trunkline.calls[0].end(); 0")
    tabs_to(person, "transfer")
    person.key("Enter")
    person.stays("number")
    person.types("5550000")
    person.key("Enter")
    person.reads("words", "Transferring")
    person.js(f"{FRONT}.finish('remoteHangup')")
    person.shown("dialer")
    person.not_lost("after the transfer")
    tabs_to(person, "show-missed")
    person.key("Enter")
    person.sees("document.querySelectorAll('#history li').length > 0 && document.querySelectorAll('#history li:not(.missed)').length === 0", "only missed calls are shown")
    tabs_until(person, f"({ROW})?.textContent?.includes({YESTERDAY})", "a missed call of yesterday")
    person.js(f"window.wanted = ({ROW}).textContent.replace(/\\D/g, '').slice(0, 11)")
    person.expects(person.js("document.activeElement.ariaLabel || document.activeElement.textContent").startswith("Call "), "the button's name says that it calls")
    person.key("Enter")
    person.sees("trunkline.questions.some(([what, to]) => what === 'call' && to === '+' + wanted)", "it is called back")
    person.sees(f"{FRONT}.phase === 'starting'", "the call is set up")
    person.not_lost("when it is called back")


a_newcomer_does_all_by_keyboard.isChromiumOnly = True

ACTS = [
    a_newcomer_does_all_by_keyboard,
    a_second_call_is_spoken_at_once, a_call_is_spoken_from_its_ring_to_its_end, hang_up_is_in_view, merged_calls_have_a_row_for_each, ten_calls_wait, names_are_shown_as_text_and_cut,
    a_screen_reader_walks_in_order,
]
