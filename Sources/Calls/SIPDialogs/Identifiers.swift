import TrunklineBytes
import TrunklineSIP

/// Letters and digits: legal in tags, branches and Call-IDs.
let identifierAlphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
/// The prefix of every RFC 3261 branch.
let magicCookie = "z9hG4bK"

extension UserAgent {
  /// A tag of 95 random bits.
  func newTag() -> String { random.text(16, alphabet: identifierAlphabet) }

  func newCallID() -> String { random.text(24, alphabet: identifierAlphabet) }

  /// Cookie, our mark, random text, and a hash of the user that the request is for: our mark with the same hash on a received
  /// request is a loop, with another a spiral (as in RFC 3261 §16.6 step 8).
  func newBranch(for user: String) -> String {
    magicCookie + instanceKey + random.text(12, alphabet: identifierAlphabet) + "."
      + hexString(FNV1a(plainNumber(user).utf8).value)
  }

  /// Whether we sent this request before, for the same user.
  func isLoop(_ message: Message, user: String) -> Bool {
    guard let vias = try? message.vias else { return false }
    let hash = hexString(FNV1a(plainNumber(user).utf8).value)
    return vias.contains { via in
      guard let branch = via.branch.map(message.text) else { return false }
      return branch.hasPrefix(magicCookie + instanceKey) && branch.hasSuffix("." + hash)
    }
  }

  /// The To tag of a response without state: the same for every retransmission of the request.
  func statelessTag(_ message: Message) -> String {
    let branch = (try? message.topVia)?.branch.map(message.text) ?? ""
    return hexString(FNV1a((instanceKey + branch + message.callID).utf8).value)
  }
}
