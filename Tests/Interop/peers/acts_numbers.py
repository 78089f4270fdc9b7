"""What is typed, pasted and linked in the web phone, and the calls of before, for phone_acts.py."""

VALUE = "document.getElementById('number').value"
CALLED = "trunkline.questions.filter(([what]) => what === 'call')"
PASTE = "(() => {{ const data = new DataTransfer(); data.setData('text', {text}); (document.activeElement ?? document.body).dispatchEvent(new ClipboardEvent('paste', {{ clipboardData: data, bubbles: true, cancelable: true }})); }})()"


def typing_anywhere_reaches_the_dialler(person):
    person.opens()
    person.js("document.getElementById('open-settings').focus()")
    person.types("+49*")
    person.sees(f"{VALUE} === '+49*'", "what was typed beside the field is in it")
    person.stays("number")
    # another field keeps its own
    person.js("localStorage.clear(); sessionStorage.clear()")
    person.opens("login")
    person.js("document.getElementById('token').focus()")
    person.types("12")
    person.sees("document.getElementById('token').value === '12'", "the token's field has it")


def pasting_anywhere_reaches_the_dialler(person):
    person.opens()
    person.js("document.getElementById('open-settings').focus()")
    person.js(PASTE.format(text="'  +49 30 1234567  '"))
    person.sees(f"{VALUE} === '+49 30 1234567'", "what was pasted beside the field is in it")
    person.js(f"{VALUE} = ''; document.getElementById('number').focus()")
    person.js(PASTE.format(text="'030 1234567\\n030 7654321'"))
    person.clicks("dial")
    person.reads("dial-refusal", "two numbers")
    person.expects(person.js(f"{CALLED}.length") == 0, "nothing is called")


# A paste that a script makes carries no text in Firefox.
pasting_anywhere_reaches_the_dialler.isChromiumOnly = True


def what_is_no_number_is_refused_in_words(person):
    for text, words in [("030 123456 / 030 654321", "two numbers"), ("https://example.com/1", "a web address"), ("a@b.example", "e-mail"), ("sip:a@b.example", "SIP"), ("0301234567 ext. x", "extension"), ("1", "too short")]:
        person.opens()
        person.js(f"{VALUE} = {text!r}; spoken.length = 0")
        person.clicks("dial")
        person.reads("dial-refusal", words)
        person.hears(words)
        person.stays("number")
        person.expects(person.js(f"{CALLED}.length") == 0, f"{text} is not called")
        person.types("2")
        person.sees("document.getElementById('dial-refusal').textContent === ''", "it goes with the next key")


def letters_and_an_extension(person):
    person.opens()
    person.js("document.getElementById('number').focus()")
    person.types("1800FLOWERS")
    person.types(" x12")
    person.reads("dial-reading", "18003569377")
    person.reads("dial-reading", "12")
    person.key("Enter")
    person.sees(f"{CALLED}.length === 1 && {CALLED}[0][1] === '18003569377'", "the digits are called")


def a_link_fills_and_calls_nobody(person):
    person.opens()
    person.js("location.hash = '#call=' + encodeURIComponent('tel:+4930123456;ext=12')")
    person.sees(f"{VALUE} === 'tel:+4930123456;ext=12'", "the link's text is in the field")
    person.sees("location.hash === ''", "it leaves the address")
    person.hears("A link asks to call")
    person.stays("dial")
    person.reads("dial-reading", "+49 30123456")
    person.expects(person.js(f"{CALLED}.length") == 0, "nothing is called by itself")
    person.key("Enter")
    person.sees(f"{CALLED}.length === 1 && {CALLED}[0][1] === '+4930123456'", "one key more calls")
    person.opens()
    person.js("location.hash = '#call=%E0%A4%A'")
    person.js("location.hash = '#call=javascript:alert(1)'")
    person.reads("dial-refusal", "address")


def the_number_to_call_from(person):
    person.opens("numbers")
    person.shown("from")
    person.hidden("own-number")
    person.js("(() => { const at = document.getElementById('from'); at.selectedIndex = 1; at.dispatchEvent(new Event('change')); })()")
    person.js(f"{VALUE} = '+15559990001'")
    person.clicks("dial")
    person.sees(f"{CALLED}[0]?.[2]?.from === '+4930123456'", "the chosen one is asked for")
    person.opens("idle")
    person.reads("own-number", "+1 555 123 0001")
    person.hidden("from")


def names_as_one_types(person):
    person.opens()
    person.js("trunkline.questions.length = 0; document.getElementById('number').focus()")
    person.types("ada lovelace")
    person.shown("found")
    person.hears("3 names found")
    person.expects(person.js("trunkline.questions.filter(([what]) => what === 'findNames').length") <= 6, "not a question for each letter")
    person.key("Enter")
    person.sees("document.activeElement.closest('#found')", "Enter goes to the first name")
    person.key("Enter")
    person.sees(f"{VALUE} === '+15557770001'", "its number is in the field")
    person.hidden("found")
    person.stays("number")


def a_directory_of_100_000(person):
    """A gateway that answers with all of it: the first names are shown, and typing goes on."""
    person.opens()
    person.js("trunkline.findNames = async () => Array.from({ length: 100_000 }, (_, n) => ({ k: 'phone', h: `+1555${n}`, n: `Ada ${n}` })); document.getElementById('number').focus()")
    person.types("ada")
    person.sees("document.querySelectorAll('#found li').length === 8", "eight names are shown")
    person.hears("8 names found")
    person.types(" 7")
    person.sees(f"{VALUE} === 'ada 7'", "what is typed is in the field")


def missed_calls_are_counted_until_they_are_seen(person):
    person.opens("history")
    person.sees("document.querySelectorAll('#history li').length >= 50", "a page of calls")
    person.hidden("no-missed", "older-fault", "recent-local")
    person.js("trunkline.missed(3)")
    person.sees("document.title.startsWith('(3) ')", "the title counts")
    person.reads("missed-count", "3")
    person.clicks("show-missed")
    person.sees("document.title === 'Trunkline phone'", "who looks has seen them")
    person.hidden("missed-count")
    person.sees("[...document.querySelectorAll('#history li')].every((row) => row.classList.contains('missed'))", "only missed ones")
    person.clicks("older")
    person.hidden("older")
    person.sees("new Set([...document.querySelectorAll('#history li')].map((row) => row.dataset.key)).size === document.querySelectorAll('#history li').length", "no call twice")
    person.js("trunkline.questions.length = 0; document.querySelector('#history .call').click()")
    person.sees(f"{CALLED}.length === 1", "one click calls back")


def ten_thousand_calls_of_before(person):
    person.opens("many")
    person.sees("document.querySelectorAll('#history li').length >= 50", "a page of calls")
    for _ in range(3):
        before = person.js("document.querySelectorAll('#history li').length")
        person.clicks("older")
        person.sees(f"document.querySelectorAll('#history li').length === {before + 50}", "fifty more by a click")
    person.expects(person.js("trunkline.questions.filter(([what]) => what === 'history').length") == 4, "a page by a click")


def clear_is_undone(person):
    person.opens("history")
    person.sees("document.querySelectorAll('#history li').length >= 50", "a page of calls")
    person.clicks("clear")
    person.sees("document.querySelectorAll('#history li').length === 0", "none is left")
    person.clicks("undo")
    person.sees("document.querySelectorAll('#history li').length >= 50", "all are back")


ACTS = [typing_anywhere_reaches_the_dialler, pasting_anywhere_reaches_the_dialler, what_is_no_number_is_refused_in_words, letters_and_an_extension,
        a_link_fills_and_calls_nobody, the_number_to_call_from, names_as_one_types, a_directory_of_100_000, missed_calls_are_counted_until_they_are_seen, ten_thousand_calls_of_before, clear_is_undone]
