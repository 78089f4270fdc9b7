import CallFlow
import CallModel
import TrunklineBytes
import TrunklineMediaSession

/// How a device's media comes up; nil: never.
struct MediaPlan {
  var ice: Duration? = .milliseconds(30)
  var dtls: Duration? = .milliseconds(60)
  var failure: AppLegFailure?
}

/// The media threads: they do as each device's plan says, and note what the invariants need.
final class MediaScript {
  unowned let world: World
  var calls: [MediaSessionID: CallID] = [:]
  var open: Set<MediaSessionID> = []
  /// Legs with pair and keys, by session, when they had them.
  var up: [MediaSessionID: Set<AppLegID>] = [:]
  var locked: [MediaSessionID: AppLegID] = [:]
  var connected: Set<MediaSessionID> = []
  /// The trunk legs as they were set, all calls in one list.
  var trunks: [TrunkLegParameters] = []
  private var devices: [AppLegID: [MediaSessionID: String]] = [:]
  /// Whose DTLS association stands, and with which fingerprint: an ICE restart keeps it.
  private var keyed: [MediaSessionID: [AppLegID: [UInt8]]] = [:]
  private var epochs: [MediaSessionID: [AppLegID: Int]] = [:]

  init(_ world: World) { self.world = world }

  func reserve(_ request: MediaRequest) -> CallMachine.Input {
    if world.refusesMedia { return .mediaRefused(request.call, reason: "no ports") }
    calls[request.session] = request.call
    return .mediaReserved(request.call, Self.reservation(request.session))
  }

  static func reservation(_ session: MediaSessionID) -> MediaReservation {
    MediaReservation(
      session: session, trunkAddress: SocketAddress(IPAddress(198, 51, 100, 9), 41_000),
      appCandidates: [SocketAddress(IPAddress(198, 51, 100, 9), 40_000)], fingerprint: [UInt8](repeating: 0xab, count: 32))
  }

  func handle(_ command: MediaCommand) {
    switch command {
    case .addAppLeg(let session, _, _): open.insert(session)
    case .setAppRemote(let session, let leg, let remote, _, _): described(session, leg, remote)
    case .setTrunk(_, let parameters): trunks.append(parameters)
    case .lockWinner(let session, let leg): locked[session] = leg
    case .connect(let session, let leg, _):
      connected.insert(session)
      // the gate's promise, seen from here
      if up[session]?.contains(leg) != true { Invariants.broken("media joined before ICE and DTLS were up") }
    case .close(let session):
      open.remove(session)
      world.after(.milliseconds(2)) { [world] in world.give(.media(.closed(session, MediaStatistics()))) }
    default: break
    }
  }

  private func described(_ session: MediaSessionID, _ leg: AppLegID, _ remote: AppLegRemote) {
    guard let app = world.device(remote.ufrag), let call = calls[session] else { return }
    epochs[session, default: [:]][leg] = remote.generation
    up[session]?.remove(leg)
    let plan = app.media
    func isCurrent() -> Bool { open.contains(session) && epochs[session]?[leg] == remote.generation }
    if let ice = plan.ice {
      world.after(ice) { [world, self] in
        guard isCurrent() else { return }
        if keyed[session]?[leg] == remote.fingerprint { up[session, default: []].insert(leg) }
        let address = SocketAddress(IPAddress(192, 0, 2, 7), 5_000)
        world.give(.media(.nominated(session, leg, generation: remote.generation, remote: address)))
      }
    }
    guard let dtls = plan.dtls else { return }
    world.after(dtls) { [world, self] in
      guard isCurrent() else { return }
      if let failure = plan.failure { return world.give(.media(.appLegFailed(session, leg, failure))) }
      keyed[session, default: [:]][leg] = remote.fingerprint
      if plan.ice != nil { up[session, default: []].insert(leg) }
      world.give(.media(.keysInstalled(session, leg, generation: remote.generation, profile: "AEAD_AES_128_GCM")))
      app.mediaIsUp(call, gen: remote.generation)
    }
  }
}
