import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes

/// Devices that connect, disconnect and resume during a call.
extension Call {
  /// What a new session is sent about this call in or after its `welcome`.
  enum Greeting {
    case snapshot(CallSnapshot)
    case gone(CallOver)
  }

  /// For a session that was not resumed: the snapshot replaces everything sent before. A device that may still show a call that
  /// is over for it is sent its terminal message.
  /// - Parameter mayJoin: the device accepts calls, and its session is not for another call only.
  mutating func greet(_ device: DevicePresence, mayJoin: Bool, _ step: inout Step) -> Greeting? {
    guard isLive else { return nil }
    if terminals[device.key] != nil { return terminals.popUnseen(device.key).map { .gone($0) } }
    if let index = index(of: device.key) {
      devices[index].connected(device)
      pushConnected(device, isNew: true, &step)
      _ = devices[index].sends(capabilities)
      return .snapshot(snapshot(devices[index], step))
    }
    let mayJoin = mayJoin && (device.info.onlyCall == id || users.isFor(device.accounts, of: device.key.user))
    guard ringsDevices, mayJoin || pushes.mayShow(device.key) else { return nil }
    if isUndecided, users.ringing.contains(device.key.user) {
      guard let index = addDevice(device, &step) else { return nil }
      markOnce(.offered, &step)
      pushConnected(device, isNew: true, &step)
      _ = devices[index].sends(capabilities)
      return .snapshot(snapshot(devices[index], step))
    }
    // a push may have woken the device for this call: a late one is sent why the call is over for it
    let isDiverted = isDiverted(for: device.key.user)
    guard isDiverted || winner != nil, !terminals.isFull else { return nil }
    let reason = isDiverted ? divertedReason ?? .diverted : .answeredElsewhere
    let over = CallOver(reason, by: isDiverted ? .gateway : .app, at: step.wallNow)
    terminals.end(device.key, Terminal(over: over, isByDevice: false, isUnseen: false))
    return .gone(over)
  }

  /// A caller's name, or a better one, arrived late: later offers, snapshots and pushes carry it, and the devices of the call are
  /// sent an update.
  mutating func callerKnown(_ caller: Handle, _ step: inout Step) {
    let caller = Handle(
      k: caller.k, h: String(caller.h.prefix(Limits.textCharacters)), n: caller.n.map { String($0.prefix(Limits.textCharacters)) }
    )
    guard isLive, direction == .incoming, parties.identify(caller) else { return }
    for device in devices where terminals[device.key] == nil {
      step.send(.callUpdate(CallUpdate(from: parties.from)), to: device.key, call: id)
    }
  }

  func snapshot(_ leg: DeviceLeg, _ step: Step) -> CallSnapshot {
    var out = CallSnapshot(
      call: id, dir: ringsDevices ? .incoming : .outgoing, state: snapshotState, from: parties.from, to: parties.to,
      acct: users.account(of: leg.key.user), sdp: leg.sdp, gen: leg.gen, at: step.wall(stateSince),
      exp: ringClock.until.map { step.wall($0) }, pstn: ringsDevices ? pstn : nil, caps: capabilities)
    if ringsDevices { out.parameters = parties.parameters }
    if winner == leg.key { (out.translate, out.muted) = (audio.translation, audio.isMuted) }
    return out
  }

  /// Sends the capabilities to the device that has the call, if they differ from those sent last.
  mutating func sendCapabilities(_ step: inout Step) {
    guard state == .connected, let winner, let index = winnerIndex, devices[index].sends(capabilities) else { return }
    step.send(.callUpdate(CallUpdate(caps: capabilities)), to: winner, call: id)
  }

  private var snapshotState: CallSnapshot.State {
    switch state {
    case .parked, .ringing, .diverting, .ended: .ringing
    case .answering: .answering
    case .starting: .starting
    case .ready: .ready
    case .progress: .progress
    case .connected: audio.isHeld ? .held : .connected
    }
  }

  mutating func deviceResumed(_ device: DevicePresence, _ step: inout Step) {
    let (key, session) = (device.key, device.session)
    terminals.resumed(key)
    guard isLive, let index = index(of: key) else { return }
    devices[index].resumed(session)
    pushConnected(device, isNew: false, &step)
  }

  mutating func deviceDisconnected(_ key: DeviceKey, _ step: inout Step) {
    terminals.socketLost(key)
    guard isLive, let index = index(of: key) else { return }
    if endLostTest(&step) { return }
    let until = step.now + Limits.reconnect
    devices[index].disconnected(until: until)
    // A device that no push reaches has no other timer: the caller would hear ringing until the ring's end.
    if isUndecided, ringsDevices, terminals[key] == nil, devices[index].phase == .offered { ringClock.checkReconnect(at: until) }
    pushDisconnected(key, &step)
  }

  /// The device's session cannot be resumed, though a new one may follow at once. A ringing call then loses the device; a call
  /// that the device has continues while its media does.
  mutating func deviceVanished(_ key: DeviceKey, _ step: inout Step) {
    guard let index = index(of: key) else { return }
    if endLostTest(&step) { return }
    // a page that is reloaded, also over a slow network, opens its next session within this time
    let until = step.now + Limits.reconnect
    devices[index].disconnected(until: until)
    guard isUndecided, ringsDevices, terminals[key] == nil else { return }
    devices[index].stopsRinging()
    ringClock.checkReconnect(at: until)
  }

  mutating func offerAcked(_ key: DeviceKey, on session: SessionID) {
    guard isLive, let index = index(of: key) else { return }
    devices[index].acked(on: session)
    pushes.offerAcked(key)
  }
}
