import CallFlow
import CallModel
import GatewayCore
public import TrunklineBytes
import TrunklinePlatform
public import TrunklineSIPDialogs

/// Other addresses of this machine during calls. The calls follow a few per step (`Limits.movedCalls`), since each costs sockets
/// and a re-INVITE.
extension Control {
  /// How far the calls have followed the newest change.
  struct AddressWalk {
    /// For the candidates of apps: by media thread, and the call after which it continues.
    var apps: (candidates: [[SocketAddress]], after: CallNumber?)?
    /// For trunk legs.
    var trunks: (successor: (Flow, _ hasMoved: Bool) -> Flow?, after: CallNumber?)?
    var timer: EventLoop.TimerID?
  }

  /// The machine's addresses or routes have changed; the SIP transport has them already.
  /// - Parameter appCandidates: the candidates for apps, by media thread.
  public func moved(own: OwnAddresses, advertised: AdvertisedAddresses, sip: String, appCandidates: [[SocketAddress]]) {
    run(.moved(own, advertised, sip: sip))
    addressWalk.apps = (appCandidates, nil)
    followAddresses()
  }

  /// The machine's addresses have been stable for a while: calls whose address was removed continue from another.
  /// - Parameter successor: given a dialog's flow and whether it has moved before, the flow that replaces it; nil: none. Called
  ///   for each dialog on this thread, now and in later steps.
  public func moveCalls(_ successor: @escaping (Flow, _ hasMoved: Bool) -> Flow?) {
    addressWalk.trunks = (successor, nil)
    followAddresses()
  }

  private func followAddresses() {
    if let (candidates, last) = addressWalk.apps {
      let (calls, next) = core.machine.liveCalls(after: last, most: Limits.movedCalls)
      addressWalk.apps = next.map { (candidates, $0) }
      if !calls.isEmpty { run(.call(.appCandidates(candidates, of: calls))) }
    }
    if let (successor, last) = addressWalk.trunks {
      let (calls, next) = core.machine.liveCalls(after: last, most: Limits.movedCalls)
      addressWalk.trunks = next.map { (successor, $0) }
      var flows: [LegID: Flow] = [:]
      for leg in calls.flatMap(core.machine.trunkLegs) {
        if let (flow, hasMoved) = core.userAgent.flow(of: leg) { flows[leg] = successor(flow, hasMoved) }
      }
      if !calls.isEmpty { run(.moveCalls(calls, flows: flows)) }
    }
    guard addressWalk.apps != nil || addressWalk.trunks != nil else { return }
    let timer = addressWalk.timer ?? loop.addTimer("moved calls") { [unowned self] in followAddresses() }
    addressWalk.timer = timer
    loop.setTimer(timer, at: loop.now + Limits.movePause)
  }
}
