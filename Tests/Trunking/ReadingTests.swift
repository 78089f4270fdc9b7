import PhoneNumbers
import Testing
import Trunking

/// What a trunk may read in a number that its rules have written.
@Suite struct ReadingTests {
  private func readings(_ number: String, _ rule: NumberRules.Rule, country: String? = nil) -> [String] {
    NumberRules(outgoing: [rule], country: country.flatMap { NumberPlan(country: $0) }).readings(of: number)
  }

  @Test(
    arguments: [
      ("+1004930123456", "+1", 2, "", "+4930123456"), ("+1011441234567", "+1", 2, "", "+441234567"),
      ("+4900441234567", "+49", 3, "", "+441234567"), ("+49301711234567", "+4930", 5, "", nil),
      ("+4930001441234567", "+4930", 5, "", "+1441234567"), ("+493001711234567", "+4930", 5, "", "+491711234567"),
      ("+4900441234567", "+49", 3, "9", "+441234567"), ("+490900123456", "+49", 3, "0", "+900123456"),
      ("+490441234567", "+49", 3, "0", "+441234567"),
      ("+78101234567", "+7", 2, "", "+1234567"),
    ] as [(String, String, Int, String, String?)])
  func `a rest that is dialled as another number is read as that`(
    number: String, prefix: String, strip: Int, add: String, read: String?
  ) {
    let found = readings(number, .init(prefix: prefix, strip: strip, add: add))
    #expect(read.map { found == [$0] } ?? found.isEmpty, "\(found)")
  }

  @Test(
    arguments: [
      ("+4930123456", "+", 1, "00"), ("+4930123456", "+", 1, ""), ("+12125551234", "+", 1, ""), ("+12125551234", "+", 1, "011"),
      ("+4930123456", "+49", 3, "0"), ("+12125551234", "+1", 2, ""), ("+12125551234", "+1", 1, ""),
      ("+390612345678", "+39", 3, ""),
      ("+390111234567", "+39", 3, ""), ("+4930123456", "+4930", 5, ""), ("+4930123456", "+49", 3, "90"),
      ("+78121234567", "+7", 2, "8"),
      ("110", "+", 1, ""), ("+4930123456", "+44", 3, "0"),
    ] as [(String, String, Int, String)])
  func `what carriers' rules do in earnest leaves the number what it is`(number: String, prefix: String, strip: Int, add: String)
  {
    #expect(readings(number, .init(prefix: prefix, strip: strip, add: add)).isEmpty)
  }

  @Test func `the trunk's country reads, too`() {
    #expect(readings("+8610123456", .init(prefix: "+", strip: 1, add: "810"), country: "7").isEmpty)
    #expect(readings("+4901149123", .init(prefix: "+49", strip: 3), country: "1").contains("+49123"))
  }
}
