/// What a SIP message is, for the counters: read from its first line and CSeq without parsing the rest.
enum MessageLine: Equatable {
  case request(method: String)
  case response(method: String, code: Int)

  /// Methods with a label of their own; strangers' words must not fill the table.
  static let methods: Set<String> = [
    "INVITE", "ACK", "BYE", "CANCEL", "OPTIONS", "REGISTER", "PRACK", "UPDATE", "REFER", "NOTIFY", "SUBSCRIBE", "INFO", "MESSAGE", "PUBLISH",
  ]

  init?(_ bytes: [UInt8]) {
    let head = bytes.prefix(Limits.peekedBytes)
    let words = head.prefix { $0 != 0x0d && $0 != 0x0a }.split(separator: 0x20, maxSplits: 2)
    guard words.count >= 2 else { return nil }
    guard words[0].elementsEqual("SIP/2.0".utf8) else {
      self = .request(method: Self.label(words[0]))
      return
    }
    guard let code = Int(String(decoding: words[1], as: UTF8.self)), (100...699).contains(code) else { return nil }
    self = .response(method: Self.sequenceMethod(head), code: code)
  }

  private static func label(_ word: some Collection<UInt8>) -> String {
    let text = String(decoding: word.prefix(16), as: UTF8.self)
    return methods.contains(text) ? text : "other"
  }

  private static func sequenceMethod(_ head: ArraySlice<UInt8>) -> String {
    let name = Array("cseq".utf8)
    for line in head.split(separator: 0x0a) {
      guard line.count > 5, line.prefix(4).elementsEqual(name, by: { $0 | 0x20 == $1 }) else { continue }
      let words = line.split { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }
      if let last = words.last { return label(last) }
    }
    return "other"
  }
}
