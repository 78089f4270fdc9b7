import TrunklineBytes
import TrunklineSIP

/// Letters and digits: legal in tags, branches and Call-IDs.
let identifierAlphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
/// The prefix of every RFC 3261 branch.
let magicCookie = "z9hG4bK"

/// Everything that must not repeat or be guessed: numbers of transactions and legs, tags, Call-IDs, branches, first CSeq and RSeq,
/// and the random delays of RFC 3261.
struct Identifiers {
  private let random: RandomSource
  /// Marks our branches, so that a request of ours that loops back is recognised.
  private let mark: String
  private var last: UInt64 = 0

  init(_ random: RandomSource) {
    self.random = random
    mark = random.text(8, alphabet: identifierAlphabet)
  }

  /// The number of a new transaction or inbound leg; none is used twice.
  mutating func nextNumber() -> UInt64 {
    last += 1
    return last
  }

  /// A tag of 95 random bits.
  func newTag() -> String { random.text(16, alphabet: identifierAlphabet) }

  func newCallID() -> String { random.text(24, alphabet: identifierAlphabet) }

  /// Cookie, our mark, random text, and a hash of the user that the request is for: our mark with the same hash on a received
  /// request is a loop, with another a spiral (as in RFC 3261 §16.6 step 8).
  func newBranch(for user: String = "") -> String {
    magicCookie + mark + random.text(12, alphabet: identifierAlphabet) + "." + hexString(FNV1a(plainNumber(user).utf8).value)
  }

  /// The CSeq that a dialog's requests begin with (RFC 3261 §8.1.1.5).
  func initialSequence() -> UInt32 { UInt32(truncatingIfNeeded: random.next() & 0xffff) + 1 }

  /// The RSeq of an INVITE's first reliable provisional response (RFC 3262 §3).
  func initialResponseNumber() -> UInt32 { UInt32(truncatingIfNeeded: random.next() & 0x3fff_ffff) + 1 }

  /// RFC 3261 §14.1: the owner of the Call-ID waits 2.1 to 4 s, the other party up to 2 s, in steps of 10 ms.
  func glareDelay(ownsCallID: Bool) -> Duration {
    ownsCallID ? .milliseconds(2_100 + Int(random.next() % 191) * 10) : .milliseconds(Int(random.next() % 201) * 10)
  }

  /// Retry-After of a 500 to an offer that crosses another: up to 10 s (RFC 3261 §14.2).
  func offerRetrySeconds() -> UInt64 { random.next() % 10 }

  /// Whether we sent this request before, for the same user.
  func isLoop(_ message: Message, user: String) -> Bool {
    guard let vias = try? message.vias else { return false }
    let hash = hexString(FNV1a(plainNumber(user).utf8).value)
    return vias.contains { via in
      guard let branch = via.branch.map(message.text) else { return false }
      return branch.hasPrefix(magicCookie + mark) && branch.hasSuffix("." + hash)
    }
  }

  /// The To tag of a response without state: the same for every retransmission of the request.
  func statelessTag(_ message: Message) -> String {
    let branch = (try? message.topVia)?.branch.map(message.text) ?? ""
    return hexString(FNV1a((mark + branch + message.callID).utf8).value)
  }
}
