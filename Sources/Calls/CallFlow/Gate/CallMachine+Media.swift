import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession

/// Events of the media threads.
extension CallMachine {
  mutating func handle(_ event: MediaEvent, _ step: inout Step) {
    switch event {
    case .nominated(let session, let leg, let generation, _):
      change(calls.id(of: session), &step) { $0.nominated(leg, epoch: generation, &$1) }
    case .keysInstalled(let session, let leg, let generation, let profile):
      change(calls.id(of: session), &step) { $0.keysInstalled(leg, epoch: generation, profile: profile, &$1) }
    case .appLegFailed(let session, let leg, let failure):
      change(calls.id(of: session), &step) { $0.appLegFailed(leg, failure, &$1) }
    case .appLegSilent(let session, let leg): change(calls.id(of: session), &step) { $0.appLegSilent(leg, &$1) }
    case .appMoved(let session, let leg, let address): change(calls.id(of: session), &step) { $0.appMoved(leg, to: address, &$1) }
    case .appOneWay(let session, let leg, let direction):
      change(calls.id(of: session), &step) { $0.appOneWay(leg, direction, &$1) }
    case .appLegBack(let session, let leg): change(calls.id(of: session), &step) { $0.appLegBack(leg, &$1) }
    case .trunkSilent(let session): change(calls.id(of: session), &step) { $0.trunkSilent(session, &$1) }
    case .trunkBack(let session): change(calls.id(of: session), &step) { $0.trunkBack(session, &$1) }
    case .firstAudio(let session, let direction, let at):
      change(calls.id(of: session), &step) { $0.firstAudio(direction, at: at, &$1) }
    case .trunkSourceRejected, .trunkStreamUnknown, .trunkSendsTones: break  // logged by control
    case .digit(let session, .trunkToApp, let digit, let milliseconds):
      change(calls.id(of: session), &step) { $0.digitReceived(digit, milliseconds, in: session, &$1) }
    case .digit: break  // an app's own telephone-event goes to the trunk on the media thread
    case .quality(let session, let statistics): change(calls.id(of: session), &step) { $0.measured(statistics, of: session, &$1) }
    case .played(let session): change(calls.id(of: session), &step) { $0.played(&$1) }
    case .closed(let session, let statistics):
      guard let id = calls.id(of: session) else { return }
      if calls[id]?.session != session { return diversionClosed(id, statistics, &step) }
      change(id, &step) { call, step in
        if call.isLive { call.end(.server, by: .gateway, detail: "media ended", &step) }
      }
      finish(id, statistics, &step)
    }
  }
}
