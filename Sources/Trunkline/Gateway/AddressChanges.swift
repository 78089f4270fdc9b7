import Configuration
import Control
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

/// Consequences of changes of this machine's addresses, for SIP and for calls under way. On the control thread.
final class AddressChanges {
  private static let stableTime = Duration.seconds(2)

  private let settings: Settings
  private let control: Control
  private let sip: SIPComponent
  private let network: NetworkComponent
  private let media: MediaComponent
  private let loop: EventLoop
  /// The addresses to which calls under way move once they are stable; nil: no change is pending.
  private var changed: MachineAddresses?
  private var stable: EventLoop.TimerID?

  init(
    _ settings: Settings, control: Control, sip: SIPComponent, network: NetworkComponent, media: MediaComponent, loop: EventLoop
  ) {
    (self.settings, self.control, self.sip) = (settings, control, sip)
    (self.network, self.media, self.loop) = (network, media, loop)
  }

  /// The machine's addresses or routes may have changed.
  func moved(_ plan: NetworkPlan) {
    sip.sockets.networkChanged(absent: plan.absent)
    control.moved(
      own: settings.own(plan, bound: sip.bound), advertised: settings.advertisedAddresses(plan), sip: sip.nodeAddress(plan),
      appCandidates: media.plane.appCandidates)
    awaitStableAddresses(plan)
  }

  /// Calls under way move once the addresses are stable: an address that is removed and added again, or replaced by another, is
  /// one change. An unchanged state does not restart the wait.
  private func awaitStableAddresses(_ plan: NetworkPlan) {
    let timer = stable ?? loop.addTimer("addresses") { [weak self] in self?.moveCalls() }
    guard changed != plan.machine else { return }
    (stable, changed) = (timer, plan.machine)
    loop.setTimer(timer, at: loop.now + Self.stableTime)
  }

  private func moveCalls() {
    changed = nil
    let plan = network.plan
    control.moveCalls { [sockets = sip.sockets] flow, hasMoved in
      if !hasMoved, plan.isHere(flow.local.ip) { return nil }
      return sockets.flow(flow.transport, toward: flow.remote).flatMap { $0.local == flow.local ? nil : $0 }
    }
  }
}
