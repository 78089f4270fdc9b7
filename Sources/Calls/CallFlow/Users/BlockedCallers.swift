import AppSessions
import CallModel
import PhoneNumbers

/// The callers whose calls do not ring, by scope (`DirectoryScope`). A value in the control thread's memory: 8 bytes a number and
/// about 150 a scope. A look-up costs a hash and a binary search for each of the called user's two scopes.
public struct BlockedCallers: Sendable {
  /// Ascending.
  private var numbers: [String: [Int64]] = [:]

  public init() {}

  public var isEmpty: Bool { numbers.isEmpty }
  /// Numbers of all scopes.
  public var count: Int { numbers.values.reduce(0) { $0 + $1.count } }

  /// - Parameter blocked: ascending; empty: the scope blocks no caller.
  public mutating func replace(_ scope: String, with blocked: [Int64]) { numbers[scope] = blocked.isEmpty ? nil : blocked }

  /// The scope that blocks a caller of this user; nil: none does.
  /// - Parameter account: the call's account; nil: no particular one, which is `default`.
  func scope(blocking number: Int64, user: String, account: String?) -> String? {
    let scopes = [DirectoryScope.user(user), DirectoryScope.account(account ?? CallMachine.defaultAccount)]
    return scopes.first { numbers[$0].map { Self.contains($0, number) } ?? false }
  }

  /// Country code and digits as one integer, as in a directory; nil: the text is not 7 to 15 digits with or without `+` or `00`,
  /// or the digits begin with a 0.
  static func number(_ text: String) -> Int64? {
    // the directory is parsed in the same way: +44 (0)20 is +4420
    let text = text.hasPrefix("+") ? (try? DialledNumber(text, in: nil))?.text ?? text : text
    let digits = Routing.canonical(text).utf8
    guard (7...15).contains(digits.count), digits.first != UInt8(ascii: "0") else { return nil }
    var value: Int64 = 0
    for byte in digits {
      guard (48...57).contains(byte) else { return nil }
      value = value * 10 + Int64(byte - 48)
    }
    return value
  }

  private static func contains(_ sorted: [Int64], _ number: Int64) -> Bool {
    var (low, high) = (0, sorted.count)
    while low < high {
      let middle = low + (high - low) / 2
      if sorted[middle] < number { low = middle + 1 } else { high = middle }
    }
    return low < sorted.count && sorted[low] == number
  }
}

extension CallMachine {
  /// The scope that blocks the caller; nil: none does. A caller that withholds the number is not blocked.
  func blocking(_ call: Call, user: String, account: String?) -> String? {
    guard !blockedCallers.isEmpty, !call.parties.isPrivate, let number = BlockedCallers.number(call.parties.callerNumber) else {
      return nil
    }
    return blockedCallers.scope(blocking: number, user: user, account: account)
  }
}
