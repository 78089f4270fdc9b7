import AppServer
import Synchronization
import TrunklineBytes
import TrunklinePlatform

/// Answers by Idempotency-Key: a program that did not receive the answer to a POST repeats it, and nothing is done twice. Any
/// thread.
///
/// A key belongs to its token and holds for a day, or until 10,000 newer ones have arrived; a restart drops all. Temporary
/// refusals (429, 5xx) are not kept: the repeat is a new try.
final class IdempotencyTable: Sendable {
  enum Verdict {
    /// `finish` must be called afterwards.
    case new(Ticket)
    case answered(AdminResponse)
  }
  struct Ticket: Sendable, Hashable {
    fileprivate var key: Key
    fileprivate var number: UInt64
  }
  fileprivate struct Key: Hashable, Sendable {
    var client: String
    var text: String
  }

  static let keyBytes = 1...128
  static let lifetime = Duration.seconds(86_400)

  private struct Entry {
    var number: UInt64
    /// Hash of the request.
    var digest: [UInt8]
    var began: Instant
    /// Nil: in flight.
    var answer: AdminResponse?
  }
  private struct State {
    var entries: [Key: Entry] = [:]
    /// A ring of the newest; an entry is dropped when its slot is reused.
    var ring: [Ticket] = []
    var next: UInt64 = 0
  }
  private let state = Mutex(State())
  private let capacity: Int

  init(capacity: Int = 10_000) { self.capacity = capacity }

  func begin(_ key: String, _ request: AdminRequest, at now: Instant = MonotonicClock.now()) -> Verdict {
    guard Self.keyBytes.contains(key.utf8.count), key.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) else {
      return .answered(APIError(.badRequest, "Idempotency-Key: 1 to 128 visible ASCII characters").response)
    }
    guard let digest = request.digest else {
      return .answered(APIError(.server, "the request cannot be hashed").response)
    }
    let key = Key(client: request.client, text: key)
    return state.withLock { state in
      if let entry = state.entries[key], now - entry.began < Self.lifetime {
        guard entry.digest == digest else {
          return .answered(APIError(.keyReused, "this Idempotency-Key was used for another request").response)
        }
        return .answered(
          entry.answer ?? APIError(.inFlight, "the first request with this Idempotency-Key is not answered yet").response)
      }
      let ticket = Ticket(key: key, number: state.next)
      let index = Int(state.next % UInt64(capacity))
      state.next += 1
      if index < state.ring.count {
        let oldest = state.ring[index]
        if state.entries[oldest.key]?.number == oldest.number { state.entries[oldest.key] = nil }
        state.ring[index] = ticket
      } else {
        state.ring.append(ticket)
      }
      state.entries[key] = Entry(number: ticket.number, digest: digest, began: now)
      return .new(ticket)
    }
  }

  func finish(_ ticket: Ticket, _ answer: AdminResponse) {
    state.withLock { state in
      guard state.entries[ticket.key]?.number == ticket.number else { return }
      if answer.status == 429 || answer.status >= 500 {
        state.entries[ticket.key] = nil
      } else {
        state.entries[ticket.key]?.answer = answer
      }
    }
  }

  var count: Int { state.withLock { $0.entries.count } }
}
