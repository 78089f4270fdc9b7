import RESP
import TrunklineBytes

/// The connection that receives messages. It is pinged every second: a half-open one would be silent for ever.
final class SharedStoreSubscription {
  private let link: SharedStoreLink
  private(set) var nextPing: Instant
  private var awaitsAnswer = false

  init(_ link: SharedStoreLink, at now: Instant) { (self.link, nextPing) = (link, now + Limits.ping) }

  func received() { awaitsAnswer = false }
  func flush() { link.flush() }
  func readArrived() { link.readArrived() }
  func close() { link.close() }

  func pingIsDue(at now: Instant) -> Bool { nextPing <= now }

  /// False: the last ping was not answered.
  func ping(at now: Instant) -> Bool {
    guard !awaitsAnswer else { return false }
    awaitsAnswer = true
    nextPing = now + Limits.ping
    link.send(RESPCommand("PING"))
    return true
  }
}
