/// A request method. Case-sensitive (RFC 3261 §7.1); `other` is any legal token we have no behaviour for.
public enum Method: UInt8, Hashable, Sendable, CaseIterable {
  case invite, ack, bye, cancel, options, register, prack, update, info, refer, subscribe, notify, message, publish, other

  /// As written on the wire; `other` has no spelling of its own.
  public var name: String {
    switch self {
    case .invite: "INVITE"
    case .ack: "ACK"
    case .bye: "BYE"
    case .cancel: "CANCEL"
    case .options: "OPTIONS"
    case .register: "REGISTER"
    case .prack: "PRACK"
    case .update: "UPDATE"
    case .info: "INFO"
    case .refer: "REFER"
    case .subscribe: "SUBSCRIBE"
    case .notify: "NOTIFY"
    case .message: "MESSAGE"
    case .publish: "PUBLISH"
    case .other: "other"
    }
  }

  init(_ bytes: Span<UInt8>, _ range: ByteRange) {
    guard range.upper <= bytes.count, !range.isEmpty else {
      self = .other
      return
    }
    func exactly(_ literal: StaticString) -> Bool {
      let text = UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount)
      guard text.count == range.count else { return false }
      for index in 0..<text.count where bytes[range.lower &+ index] != text[index] { return false }
      return true
    }
    switch bytes[range.lower] {
    case UInt8(ascii: "I"): self = exactly("INVITE") ? .invite : exactly("INFO") ? .info : .other
    case UInt8(ascii: "A"): self = exactly("ACK") ? .ack : .other
    case UInt8(ascii: "B"): self = exactly("BYE") ? .bye : .other
    case UInt8(ascii: "C"): self = exactly("CANCEL") ? .cancel : .other
    case UInt8(ascii: "O"): self = exactly("OPTIONS") ? .options : .other
    case UInt8(ascii: "R"): self = exactly("REGISTER") ? .register : exactly("REFER") ? .refer : .other
    case UInt8(ascii: "P"): self = exactly("PRACK") ? .prack : exactly("PUBLISH") ? .publish : .other
    case UInt8(ascii: "U"): self = exactly("UPDATE") ? .update : .other
    case UInt8(ascii: "S"): self = exactly("SUBSCRIBE") ? .subscribe : .other
    case UInt8(ascii: "N"): self = exactly("NOTIFY") ? .notify : .other
    case UInt8(ascii: "M"): self = exactly("MESSAGE") ? .message : .other
    default: self = .other
    }
  }
}
