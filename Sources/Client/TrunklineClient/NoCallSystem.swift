public import Dispatch
import Synchronization
public import TrunklineAppProtocol
import TrunklineClientMachines

/// No call screen of the system: the app shows calls itself. For bots, Macs, and where CallKit is not allowed. Audio is active
/// during a call.
public final class NoCallSystem: CallSystem {
  private struct State {
    var queue: DispatchQueue?
    var events: (@Sendable (CallSystemEvent) -> Void)?
    var actions = 0
    var open: [SystemActionID: SystemRequest] = [:]
  }
  private let state = Mutex(State())
  private let saysUnsupported: Bool

  /// A call system for one phone.
  ///
  /// - Parameter saysUnsupported: the app requested the system's call screen, which does not exist here (the simulator): the
  ///   phone's state reports it.
  public init(saysUnsupported: Bool = false) { self.saysUnsupported = saysUnsupported }

  public func attach(to queue: DispatchQueue, _ events: @escaping @Sendable (CallSystemEvent) -> Void) {
    state.withLock { ($0.queue, $0.events) = (queue, events) }
    if saysUnsupported { report(.unsupported) }
  }

  /// Performs each request at once: there is no system to ask.
  public func perform(_ request: CallSystemRequest) {
    switch request {
    case .report(let call, _, _): report(.reported(call, nil))
    case .request(let request):
      let id = state.withLock { state -> SystemActionID in
        state.actions += 1
        let id = SystemActionID(state.actions)
        state.open[id] = request
        return id
      }
      report(.perform(id, request, timeout: nil))
    case .complete(let id, let isDone): complete(id, isDone)
    case .update, .reportEnded, .reportConnecting, .reportConnected, .configureAudio: break
    }
  }

  /// No other owner uses the audio device: it is active from the first call on.
  private func complete(_ id: SystemActionID, _ isDone: Bool) {
    let request = state.withLock { $0.open.removeValue(forKey: id) }
    guard isDone else { return }
    switch request {
    case .answer?, .start?, .hold(_, false)?: report(.audioActivated)
    case .end?, .hold?, .mute?, .digits?, .group?, nil: break
    }
  }

  /// A push that the app received by another way than PushKit; its call is shown at once, as with CallKit.
  public func pushed(_ payload: [UInt8]) { report(.pushed(payload: payload, mustReport: true)) }
  /// The token for such pushes; nil: none any longer. The phone sends it to the gateway.
  public func pushToken(_ token: DevicePut.Push?) { report(.pushToken(token)) }

  private func report(_ event: CallSystemEvent) {
    let (queue, events) = state.withLock { ($0.queue, $0.events) }
    queue?.async { events?(event) }
  }
}

extension CallSystem where Self == NoCallSystem {
  /// The app shows its calls itself.
  public static var none: NoCallSystem { NoCallSystem() }
}
