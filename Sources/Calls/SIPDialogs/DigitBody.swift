import TrunklineBytes
import TrunklineSIP

/// A digit in the body of an INFO: `application/dtmf-relay` (`Signal=5`, `Duration=160`) and `application/dtmf` (the digit alone).
struct DigitBody: Equatable {
  var digit: Character
  var milliseconds: Int

  static let relay = "application/dtmf-relay"
  static let plain = "application/dtmf"

  init(digit: Character, milliseconds: Int) { (self.digit, self.milliseconds) = (digit, milliseconds) }

  /// Nil for a body without a digit. Flash is 16 or `!`, A to D also 12 to 15, `*` and `#` also 10 and 11 (RFC 4733 numbers).
  init?(_ body: String, contentType: String) {
    guard body.utf8.count <= Limits.smallBodyBytes else { return nil }
    var signal = ""
    var duration: Int?
    for line in body.split(whereSeparator: \.isNewline) {
      let parts = line.split(separator: "=", maxSplits: 1).map { $0.filter { !$0.isWhitespace } }
      if parts.count == 2, parts[0].lowercased() == "signal" { signal = parts[1] }
      if parts.count == 2, parts[0].lowercased() == "duration" { duration = Int(parts[1]) }
      if parts.count == 1, contentType == Self.plain, signal.isEmpty { signal = parts[0] }
    }
    let numbers = ["10": "*", "11": "#", "12": "A", "13": "B", "14": "C", "15": "D", "16": "!"]
    guard let digit = (numbers[signal] ?? signal).uppercased().first, (numbers[signal] ?? signal).count == 1,
      "0123456789*#ABCD!".contains(digit)
    else { return nil }
    self.init(digit: digit, milliseconds: min(max(duration ?? 160, 40), 6_000))
  }

  var text: String { "Signal=\(digit)\r\nDuration=\(milliseconds)\r\n" }
}

extension UserAgent {
  /// INFO: digits of the two types that are in use; an empty one is a keep-alive (RFC 6086 §4.2.2 leaves it legal).
  mutating func receivedInfo(_ request: Request, _ leg: Leg) {
    if request.message.field(.infoPackage) != nil {
      return respondOnce(request, ResponseContent(code: 469, reason: "Bad Info Package"))
    }
    guard !request.message.body.isEmpty else { return respondOnce(request, ResponseContent(code: 200)) }
    let type = ((try? request.message.contentType) ?? nil)?.mediaType ?? ""
    guard type == DigitBody.relay || type == DigitBody.plain else {
      return respondOnce(
        request, ResponseContent(code: 415, fields: [(.accept, DigitBody.relay + ", " + DigitBody.plain)]))
    }
    guard let digit = DigitBody(request.message.text(request.message.body), contentType: type) else {
      return respondOnce(request, ResponseContent(code: 400, reason: "No Digit"))
    }
    respondOnce(request, ResponseContent(code: 200))
    step.emit(.digit(leg.id, digit.digit, milliseconds: digit.milliseconds))
  }

  mutating func sendDigit(_ id: LegID, _ digit: Character, milliseconds: Int) {
    guard legs[id]?.value.phase == .confirmed else { return }
    let body = DigitBody(digit: digit, milliseconds: milliseconds).text
    sendInDialog(.info, .info, on: id, RequestContent(body: body, contentType: DigitBody.relay))
  }
}
