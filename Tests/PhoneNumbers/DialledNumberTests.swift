import PhoneNumbers
import Testing

/// Numbers as people write them.
@Suite struct DialledNumberTests {
  private func read(_ text: String, _ country: String? = nil, emergency: Set<String> = []) -> String {
    do throws(NumberRefusal) {
      let number = try DialledNumber(text, in: country.flatMap { NumberPlan(country: $0) }, emergency: emergency)
      return number.text + (number.extensionDigits.map { " x\($0)" } ?? "")
    } catch {
      return "\(error)"
    }
  }

  /// An earlier hand-made rule read the first seven as `+1149301234567`, `+3606301234567`, and so on.
  @Test(arguments: [
    ("0011 49 30 1234567", "AU", "+49301234567"), ("06 30 123 4567", "HU", "+36301234567"),
    ("8 029 123-45-67", "BY", "+375291234567"),
    ("01 23 45 67 89", "CI", "+2250123456789"), ("011 15-2345-6789", "AR", "+5491123456789"),
    ("010 49 30 1234567", "JP", "+49301234567"),
    ("00 14 49 30 1234567", "BR", "+49301234567"), ("8~10 49 30 1234567", "RU", "+49301234567"),
    ("030/123 45-67", "DE", "+49301234567"), ("+49 (0)30 1234567", "FR", "+49301234567"),
    ("+39 06 698 12345", "DE", "+390669812345"),
    ("０３０１２３４５６７", "DE", "+49301234567"), ("＋49 30 1234567", nil, "+49301234567"), ("tel:+49-30-1234567", nil, "+49301234567"),
    ("1-800-FLOWERS", "US", "+18003569377"), ("0800 FLOWERS", "GB", "+448003569377"), ("4420 7946 0018", "GB", "+442079460018"),
    ("\u{202A}+49\u{A0}30\u{2011}1234567\u{202C}", nil, "+49301234567"),
  ])
  func `one number in many spellings is one`(text: String, country: String?, result: String) {
    #expect(read(text, country) == result)
  }

  @Test(arguments: [
    "030 1234567 ext. 12", "030 1234567 x12", "030 1234567 #12", "030 1234567,,12", "030 1234567;12", "tel:030-1234567;ext=12",
    "030 1234567 Extension: 12", "tel:30-1234567;phone-context=+49;ext=12",
    "030 1234567;ext=12;phone-context=example.com;user=phone",
  ])
  func `an extension is kept apart from the number`(text: String) {
    #expect(read(text, "DE") == "+49301234567 x12")
  }

  @Test func `what no country is known of stays as it is dialled, and so do service codes and extensions`() {
    #expect(read("030 1234567") == "0301234567" && read("0049 30 1234567") == "0049301234567" && read("200") == "200")
    #expect(read("200", "DE") == "200" && read("*21#", "DE") == "*21#" && read("12#3") == "12#3")
    #expect(read("115", "DE") == "115" && (try? DialledNumber("115", in: NumberPlan(country: "DE")))?.kind == .short)
  }

  // MARK: emergencies

  @Test(arguments: [
    ("CH", ["112", "117", "118", "144"]), ("AT", ["112", "122", "133", "144"]), ("FR", ["15", "17", "18", "112"]),
    ("IT", ["112", "113"]),
    ("CN", ["110", "119", "120"]), ("DE", ["110", "112"]), ("US", ["911"]), ("AU", ["000", "112"]), ("GB", ["999", "112"]),
  ])
  func `a region's emergency numbers are emergencies there`(country: String, numbers: [String]) throws {
    for text in numbers {
      let number = try DialledNumber(text, in: NumberPlan(country: country))
      #expect(number.kind == .emergency && number.text == text, "\(text)")
      #expect(try DialledNumber("+\(text)", in: NumberPlan(country: country)).text == text)
    }
  }

  @Test func `those of another region are ordinary numbers, those that the operator names are not`() throws {
    let germany = NumberPlan(country: "DE")
    for text in ["911", "144", "15"] { #expect(try DialledNumber(text, in: germany).kind != .emergency, "\(text)") }
    #expect(try DialledNumber("1-4-4", in: germany, emergency: ["144"]).kind == .emergency)
    #expect(try DialledNumber("+144", in: nil, emergency: ["144"]).kind == .emergency)
    // a whole number that begins like an emergency number
    #expect(read("+1129123456", "DE") == "\(NumberRefusal.tooShort)" && read("112 34567", "DE") != "112")
  }

  // MARK: what is no number

  @Test(
    arguments: [
      ("", .notANumber), ("+", .notANumber), ("  ", .notANumber), ("*#", .notANumber), ("()", .notANumber), ("7", .tooShort),
      (String(repeating: "1", count: 60), .tooLong), ("+49" + String(repeating: "1", count: 57), .tooLong),
      (String(repeating: "1", count: 300), .tooLong), (String(repeating: " ", count: 300) + "030", .tooLong),
      ("anonymous", .letters), ("ACME", .letters), ("alice", .letters), ("7alice", .letters), ("030 ABCDEF", .letters),
      ("030 12345ab", .letters), ("+49 30 1234567x", .letters), ("030 1234567;isub=12", .subaddress),
      ("++4930123456", .character),
      ("49+30123456", .character), ("+49*30", .character), ("030*12", .character), ("030@123456", .character),
      ("٠٣٠١٢٣٤٥٦", .character),
      ("030 12३4567", .character), ("☎030123456", .character), ("030\n1234567", .character), ("030\u{0}1234567", .character),
      ("+0049301234567", .noSuchCode), ("+999123456789", .noSuchCode), ("00 999 123456789", .noSuchCode),
      ("+4912", .local(region: "DE")),
      ("+1555123456789", .tooLong), ("030 12345678901234567", .tooLong), ("030 1234567;ext=a", .parameter),
      ("030 1234567;phone-context=+", .parameter), ("+1 253 0000", .local(region: "US")),
    ] as [(String, NumberRefusal)])
  func `a typed refusal, and never another number`(text: String, refusal: NumberRefusal) {
    #expect(throws: refusal) { try DialledNumber(text, in: NumberPlan(country: "DE")) }
  }

  @Test func `a subscriber's number without its area code says so`() {
    #expect(throws: NumberRefusal.local(region: "US")) { try DialledNumber("253-0000", in: NumberPlan(country: "US")) }
    #expect("\(NumberRefusal.local(region: "US"))".contains("area code"))
  }

  @Test func `a number has one spelling: with a prefix too many it is refused`() {
    #expect(throws: NumberRefusal.length(region: "NG")) { try DialledNumber("008297374896908", in: NumberPlan(country: "NG")) }
    for text in ["+39 06 698 12345", "+54 9 11 2345 6789", "+225 01 23 45 67 89"] {
      let number = try? DialledNumber(text, in: nil).text
      #expect(number == text.filter { $0 != " " } && (number.flatMap { try? DialledNumber($0, in: nil).text }) == number)
    }
  }

  @Test func `trunks of two countries and a user of none: a national number is refused, an international one is not`() throws {
    #expect(throws: NumberRefusal.whichCountry) { try DialledNumber("030 1234567", in: nil, isOneCountry: false) }
    #expect(try DialledNumber("+49 30 1234567", in: nil, isOneCountry: false).text == "+49301234567")
  }

  /// Any scalar at any position: the result is the number with its digits, or a refusal. Marks of extensions and service codes
  /// have their own meaning.
  @Test func `no character of Unicode makes another number`() {
    let germany = NumberPlan(country: "DE")
    for value in UInt32(0)...0x1_FFFF {
      guard let scalar = Unicode.Scalar(value), !"*#＊＃,;xX".unicodeScalars.contains(scalar), !(0x30...0x39).contains(value),
        !(0xFF10...0xFF19).contains(value)
      else { continue }
      for text in ["030123\(scalar)4567", "\(scalar)0301234567", "0301234567\(scalar)"] {
        guard let number = try? DialledNumber(text, in: germany) else { continue }
        if number.text != "+49301234567" { Issue.record("U+\(String(value, radix: 16)) in \(text): \(number.text)") }
      }
    }
  }

  // MARK: countries

  @Test func `a country is a region or a calling code, and a shared code its main region`() {
    #expect(NumberPlan(country: "DE") == NumberPlan(country: "49") && NumberPlan(country: "de") == NumberPlan(country: "DE"))
    let main = ["1": "US", "7": "RU", "39": "IT", "44": "GB", "61": "AU", "262": "RE", "599": "CW", "47": "NO", "358": "FI"]
    for (code, region) in main {
      let plan = NumberPlan(country: code)
      #expect(plan?.region == region && plan?.sharing.first == region && plan?.sharing.count ?? 0 > 1)
    }
    #expect(NumberPlan(country: "CA")?.code == "1" && NumberPlan(country: "CA") != NumberPlan(country: "1"))
    for text in ["", "0", "049", "+49", "999", "800", "XX", "D", "DEU", "001", "Ö1", "１"] {
      #expect(NumberPlan(country: text) == nil, "\(text)")
    }
  }

  @Test func `an operator's own prefixes replace the region's`() throws {
    var plan = try #require(NumberPlan(country: "DE"))
    (plan.international, plan.national) = ("99", "8")
    #expect(try DialledNumber("99 44 20 7946 0018", in: plan).text == "+442079460018")
    #expect(try DialledNumber("8 30 1234567", in: plan).text == "+49301234567")
    plan.national = ""
    #expect(try DialledNumber("30 1234567", in: plan).text == "+49301234567")
  }

  @Test func `a trunk's numbers become E 164, and what is not a number stays as it is`() throws {
    let plan = try #require(NumberPlan(country: "DE"))
    for text in ["0301234567", "0049301234567", "49301234567", "+49301234567", "301234567"] {
      #expect(plan.received(text) == "+49301234567", "\(text)")
    }
    for text in [
      "anonymous", "ACME", "110", "200", "+", "", "030 1234567", "1-800-FLOWERS", "+999123456789", "0301234567;ext=12",
    ] {
      #expect(plan.received(text) == text)
    }
  }
}
