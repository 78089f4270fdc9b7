/// A value that must not reach a log: numbers, tokens, keys. Prints as a mask; `exposed` is the deliberate way out.
public struct Redacted<Value: Sendable>: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The value itself.
  public let exposed: Value
  /// Hides a value.
  public init(_ value: Value) { exposed = value }
  public var description: String { "‹redacted›" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Redacted: Equatable where Value: Equatable {}
extension Redacted: Hashable where Value: Hashable {}

/// A telephone number or user name for logs: the last two characters stay, the rest are masked.
public func masked(_ text: some StringProtocol) -> String {
  let shown = text.count > 4 ? 2 : 0
  return String(repeating: "•", count: text.count - shown) + text.suffix(shown)
}
