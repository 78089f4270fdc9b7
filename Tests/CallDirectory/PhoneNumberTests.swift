import Testing
import TrunklineCallDirectory

/// DIR-1: what text becomes which number.
@Suite struct PhoneNumberTests {
  private let germany = NumberingPlan(callingCode: 49, trunkPrefix: "0")
  private let italy = NumberingPlan(callingCode: 39)
  private let america = NumberingPlan(callingCode: 1, trunkPrefix: "1", internationalPrefixes: ["011"])

  private func value(_ text: String, _ plan: NumberingPlan? = nil) -> Int64? { PhoneNumber(text, plan: plan)?.value }

  @Test func `international numbers need no plan, whatever stands between their digits`() {
    for text in [
      "+15550009999", "+1 (555) 000-9999", "+1.555.000.9999", "+1/555/0009999", "0015550009999",
      " +1\u{A0}555\u{2011}000\u{202F}9999 ",
      "\u{202A}+1 555 000 9999\u{202C}", "+1\u{2060}555\u{200B}0009999",
    ] { #expect(value(text) == 15_550_009_999, "\(text)") }
  }

  @Test func `national numbers get the plan's calling code, without the trunk prefix`() {
    #expect(value("030 1234567", germany) == 49_301_234_567)
    #expect(value("06 1234 5678", italy) == 390_612_345_678, "Italy keeps its 0")
    #expect(value("(555) 000-9999", america) == 15_550_009_999)
    #expect(value("1 555 000 9999", america) == 15_550_009_999)
    #expect(value("030 1234567") == nil, "nobody knows the country")
  }

  @Test func `the plan's international prefix is taken, and 00 only where it is one`() {
    #expect(value("011 49 30 1234567", america) == 49_301_234_567)
    #expect(value("0049 30 1234567", germany) == 49_301_234_567)
    #expect(value("0049 30 1234567", america) == 10_049_301_234_567, "00 is not dialled in America")
  }

  @Test func `the zero in parentheses is left out of an international number, and makes another none`() {
    #expect(value("+44 (0)20 7946 0018") == 442_079_460_018)
    #expect(value("+44 (0) 20 7946 0018") == 442_079_460_018)
    #expect(value("+44 (020) 7946 0018") == 4_402_079_460_018, "these are three digits")
    #expect(value("(0)30 1234567", germany) == 49_301_234_567)
    #expect(value("0049 (0)30 1234567", germany) == 49_301_234_567)
    #expect(value("49 (0)30 1234567", germany) == nil, "a country code, or not")
    #expect(value("+49 (0)30 (0)1234567") == nil)
  }

  @Test func `full-width characters are ASCII's, digits of other scripts are none`() {
    #expect(value("＋８１－３－１２３４－５６７８") == 81_312_345_678)
    #expect(value("+٤٩٣٠١٢٣٤٥٦٧") == nil)
    #expect(value("+४९३०१२३४५६७") == nil)
    #expect(value("+4930１23４567") == 49_301_234_567)
  }

  @Test func `what is not surely a number is none`() {
    for text in [
      "", "+", "00", "()", "+()", "Bank", "+1 555 CALL NOW", "+1 555 000 9999 x12", "+1555000;ext=1", "*21*4930123456#",
      "++15550009999",
      "1+5550009999", "+1 (555 000 9999", "+1 555) 000 9999", "+1 ((555)) 000 9999", "+0301234567", "+123456",
      "+1234567890123456",
      "+15550009999,,1", "tel:+15550009999", "+1\n5550009999", "+1\u{0}5550009999", String(repeating: "+1", count: 5_000),
      String(repeating: " ", count: 65) + "+15550009999",
    ] {
      #expect(value(text) == nil, "\(text.debugDescription)")
      if !text.hasPrefix("*") { #expect(value(text, america) == nil, "\(text.debugDescription) in America") }
    }
    #expect(value("110", germany) == nil, "short numbers are not identified")
  }

  @Test func `7 to 15 digits`() {
    #expect(value("+1234567") == 1_234_567)
    #expect(value("+999999999999999") == 999_999_999_999_999)
    #expect(PhoneNumber(999_999) == nil && PhoneNumber(1_000_000) != nil)
    #expect(PhoneNumber(1_000_000_000_000_000) == nil && PhoneNumber(Int64.min) == nil && PhoneNumber(Int64.max) == nil)
  }

  @Test func `a plan is checked`() {
    for code in [0, -1, 1_000, Int.max] { #expect(NumberingPlan(callingCode: code) == nil) }
    for prefix in ["", "a", "０", "123456", "+"] {
      #expect(NumberingPlan(callingCode: 49, trunkPrefix: prefix) == nil, "\(prefix)")
      #expect(NumberingPlan(callingCode: 49, internationalPrefixes: [prefix]) == nil, "\(prefix)")
    }
  }

  @Test func `DIR-1: a number written in any way and read again is the same`() {
    var random = Seeded(1)
    for _ in 0..<5_000 {
      let number = Int64.random(in: PhoneNumber.range, using: &random)
      let between = [" ", "-", ".", "/", "", "", "\u{A0}"]
      var text = ["+", "00", " + "].randomElement(using: &random) ?? "+"
      for digit in String(number) { text += String(digit) + (between.randomElement(using: &random) ?? "") }
      #expect(value(text) == number, "\(text)")
    }
  }

  @Test func `any text gives a number in the range, or none (fuzz)`() {
    let pieces: [String] =
      [
        "+", "0", "00", "1", "49", "(", ")", "(0)", " ", "-", "x", "٣", "９", "\u{0}", "\u{202A}", "🇩🇪", "e\u{301}", "99999999",
        "\r\n",
      ]
    for seed in 0..<10_000 {
      var random = Seeded(UInt64(seed))
      let count = Int.random(in: 0...20, using: &random)
      let text = (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
      for plan in [nil, germany, italy, america] {
        guard let number = PhoneNumber(text, plan: plan) else { continue }
        #expect(PhoneNumber.range.contains(number.value), "seed \(seed)")
        #expect(PhoneNumber(number.description) == number, "seed \(seed): its own text is read as itself")
      }
    }
  }
}

/// SplitMix64: one seed, one sequence, on every machine.
struct Seeded: RandomNumberGenerator {
  private var state: UInt64
  init(_ seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}
