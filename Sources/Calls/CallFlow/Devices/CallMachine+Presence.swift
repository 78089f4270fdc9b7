import AppSessions
import CallModel
import Devices
import TrunklineAppProtocol
import TrunklineBytes

/// Devices that connect, disconnect, reconnect and are woken: the snapshot, what they may still show, and rejects without a
/// socket.
extension CallMachine {
  mutating func connected(_ key: DeviceKey, on session: SessionID, _ info: DeviceInfo, resumed: Bool, _ step: inout Step) {
    // its login token is still valid, but it gets no snapshot, no TURN credentials, and no call that a second socket could claim
    if !resumed, devices.isRevoked(key) { return step.app(.refuse(session, .deviceRevoked(fatal: true))) }
    let device = DevicePresence(key: key, session: session, info: info)
    presences.connect(device)
    changed(devices.seen(key, info: info, at: step.wallNow), &step)
    prefetch(key.user, &step)
    if resumed {
      for id in calls.ids(of: key.user) { change(id, &step) { $0.deviceResumed(device, &$1) } }
      for id in tombstones.calls(of: key.user) {
        tombstones.update(id, key) { $0.resumed() }
        if let over = tombstones.popLost(id, key) { step.send(.callGone(over), to: key, call: id) }
      }
    } else {
      let only = device.info.onlyCall
      if let only, askTombstone(only, for: .welcome(key, session), &step) {} else { welcome(device, remote: nil, &step) }
    }
    // revoked meanwhile: the session continues for the calls that it has
    if devices.isRevoked(key) { step.app(.revoke(key)) }
  }

  /// The snapshot: every call that this device may show, and `call.gone` for each that it may still show though it is over.
  /// - Parameter remote: the end of the call that the session is for, if other nodes know it.
  mutating func welcome(_ device: DevicePresence, remote: RemoteTombstone?, _ step: inout Step) {
    var snapshots: [CallSnapshot] = []
    var gone: [GoneCall] = []
    let (only, wantsCalls) = (device.info.onlyCall, devices.wantsCalls(device.key))
    for id in calls.ids(of: device.key.user) {
      change(id, &step) { call, step in
        switch call.greet(device, mayJoin: only == id || only == nil && wantsCalls, &step) {
        case .snapshot(let snapshot): snapshots.append(snapshot)
        case .gone(let over): gone.append(GoneCall(call: id, over: over))
        case nil: break
        }
      }
    }
    for index in snapshots.indices { snapshots[index].group = groupPeers(of: snapshots[index].call, for: device.key) }
    for id in tombstones.calls(of: device.key.user) {
      tombstones.update(id, device.key) { terminal in
        if let over = terminal.popUnseen() { gone.append(GoneCall(call: id, over: over)) }
      }
      if let over = tombstones.popLost(id, device.key) { gone.append(GoneCall(call: id, over: over)) }
    }
    if let only, calls[only]?.users.concerns(device.key.user) != true, tombstones[only]?.terminals[device.key] == nil {
      // woken for a call that is no longer known here
      gone.append(GoneCall(call: only, over: over(of: only, for: device.key, remote: remote, step)))
    }
    // keeps the newest: each is a numbered message, and all of them must fit into the buffer of messages without an ack
    gone.removeFirst(max(0, gone.count - Limits.goneInWelcome))
    step.app(.welcome(device.session, calls: snapshots, gone: gone, live: Set(snapshots.map(\.call))))
  }

  mutating func disconnected(_ key: DeviceKey, _ session: SessionID, _ step: inout Step) {
    guard presences.disconnect(key, session, at: step.now) else { return }
    for id in calls.ids(of: key.user) { change(id, &step) { $0.deviceDisconnected(key, &$1) } }
    for id in tombstones.calls(of: key.user) { tombstones.update(id, key) { $0.socketLost() } }
    if let remote = presences.popMove(key) { remoteDeviceConnected(remote, &step) }
  }

  mutating func sessionEnded(_ key: DeviceKey, _ session: SessionID, _ step: inout Step) {
    guard let device = presences[key], device.session == session else { return }
    if device.isConnected { disconnected(key, session, &step) }
    presences.end(key, session)
    for id in calls.ids(of: key.user) { change(id, &step) { $0.deviceVanished(key, &$1) } }
  }

  mutating func stateChanged(_ key: DeviceKey, _ state: AppState, _ step: inout Step) {
    guard let device = presences.report(state, of: key) else { return }
    for id in calls.ids(of: key.user) { change(id, &step) { $0.pushIfInBackground(device, &$1) } }
  }

  /// A session for one call is now one for all: it is offered the calls that ring.
  mutating func upgraded(_ key: DeviceKey, _ info: DeviceInfo, _ step: inout Step) {
    guard presences[key] != nil else { return }
    if devices.isRevoked(key) { return step.app(.revoke(key)) }
    let upgraded = presences.upgrade(key, info)
    changed(devices.seen(key, info: info, at: step.wallNow), &step)
    guard let device = upgraded, devices.wantsCalls(key) else { return }
    for id in calls.ids(of: key.user) {
      change(id, &step) { call, step in
        let isItsCall = call.ringsDevices && call.users.ringing.contains(key.user)
        if isItsCall, call.users.isFor(device.accounts, of: key.user) { call.offer(to: device, &step) }
      }
    }
  }

  /// A killed app rejects without a socket: like `call.reject`, but a repeat is `ok` again.
  mutating func httpReject(
    _ request: HTTPRequestID, by key: DeviceKey, _ reject: CallReject, of id: CallID, _ step: inout Step
  ) {
    if isTurnedAway(key, in: id) { return step.app(.httpAnswer(request, .err(.deviceRevoked()))) }
    if askTombstone(id, for: .reject(request, key), &step) { return }
    let terminals = calls[id].map { $0.users.concerns(key.user) ? $0.terminals.all : [:] } ?? tombstones[id]?.terminals ?? [:]
    var answer = RequestAnswer.err(gone(id, for: key, own: terminals[key]?.over, remote: nil, step))
    if terminals[key]?.isByDevice == true {
      answer = .ok
    } else if terminals[key] == nil, let call = calls[id], call.isLive, call.users.concerns(key.user) {
      change(id, &step) { answer = $0.reject(reject, from: key, &$1) }
    }
    step.app(.httpAnswer(request, answer))
  }

  /// The body of a 410.
  func gone(_ id: CallID, for key: DeviceKey, own: CallOver?, remote: RemoteTombstone?, _ step: Step) -> Failure {
    let reason = (own ?? over(of: id, for: key, remote: remote, step)).reason
    return Failure(
      .gone, reason: reason,
      msg: reason == .unknown ? "no such call here: it is over, or its node is gone" : "the call is over for this device")
  }
}
