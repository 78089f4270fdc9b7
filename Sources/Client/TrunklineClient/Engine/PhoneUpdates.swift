import Synchronization
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// Updates from the engine to the main actor. Only the latest states are kept, so that a main thread that hangs for long costs
/// nothing; events are kept in order, at most `limit`.
final class PhoneUpdates: Sendable {
  enum Event: Sendable {
    case digit(Identifier, Character)
    case transferred(Identifier, CallTransferred)
    case presentInApp(Identifier)
    case closed(Identifier)
    case media(Identifier, pair: MediaReady.Pair?, roundTripMilliseconds: Double?, profile: String)
    case disconnected(String)
    case registered(ErrorCode?)
    case historyChanged(Int)
    case routeFellBack(from: AudioRoute, to: AudioRoute?)
    case routeReturned(AudioRoute)
    case loggedOut
  }
  struct Batch: Sendable {
    var state: PhoneState?
    var error: PhoneError??
    /// Calls in the order of their first change.
    var order: [Identifier] = []
    var calls: [Identifier: CallInfo] = [:]
    var statistics: [Identifier: ClientMedia.Statistics] = [:]
    var routes: AudioRouteChoice?
    var events: [Event] = []
  }
  static let limit = 256

  private let pending = Mutex<(batch: Batch, isAsked: Bool)>((Batch(), false))
  private let wake: @Sendable () -> Void

  /// - Parameter wake: called once until `drain`.
  init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

  func change(_ body: (inout Batch) -> Void) {
    let isFirst = pending.withLock { pending -> Bool in
      body(&pending.batch)
      defer { pending.isAsked = true }
      return !pending.isAsked
    }
    if isFirst { wake() }
  }

  func report(_ event: Event) { change { if $0.events.count < Self.limit { $0.events.append(event) } } }

  func drain() -> Batch {
    pending.withLock { pending in
      defer { pending = (Batch(), false) }
      return pending.batch
    }
  }
}
