import AppProtocol
import AppSessions
import Bytes
import Devices
import PushPolicy

/// The device registry: what apps, operators and push services say of devices, kept in `devices` and handed to the store.
extension CallMachine {
  mutating func handle(_ command: DeviceCommand, _ turn: inout Turn) {
    switch command {
    case .loaded(let stored):
      // who registered before the store was read said the newer thing
      let known = Set(devices.all.map(\.key))
      var all = DeviceRegistry(stored.filter { !known.contains($0.key) } + devices.all)
      all.defaults = devices.defaults
      devices = all
    case .defaults(let defaults): devices.defaults = defaults
    case .registered(let device): devices.learn(device)
    case .revoke(let user, let device, let question):
      let before = Set(devices.devices(of: user).filter { $0.revokedAt != nil }.map(\.key))
      do throws(DeviceError) {
        if let device, devices[DeviceKey(user: user, device: device)] == nil,
          presences[user]?.contains(where: { $0.key.device == device }) == true
        {
          changed(devices.revoke(connected: DeviceKey(user: user, device: device), at: turn.wallNow), &turn)
        } else {
          changed(try devices.revoke(user: user, device: device, at: turn.wallNow), &turn)
        }
        for device in devices.devices(of: user) where device.revokedAt != nil && !before.contains(device.key) {
          tell(.deviceRevoked, device.key, &turn)
          turn.app(.revoke(device.key))
          forbidPushes(to: device.key, &turn)
        }
        turn.answer(question, .done)
      } catch {
        turn.answer(question, .deviceRefused(error))
      }
    case .revokedBefore(let key, let time): endCalls(of: key, since: time, &turn)
    case .revokedRemotely(let key):
      guard !devices.isRevoked(key) else { return }
      changed(devices.revoke(connected: key, at: turn.wallNow), &turn)
      turn.app(.revoke(key))
      forbidPushes(to: key, &turn)
    case .forget(let user, let question):
      let known = devices.devices(of: user).map(\.key)
      for key in known {
        changed(devices.delete(key), &turn)
        forbidPushes(to: key, &turn)
      }
      for key in Set(known + (presences[user] ?? []).map(\.key)) { turn.app(.revoke(key)) }
      let grants = forgetGrants(of: user, &turn)
      turn.answer(question, .forgotten(devices: known.count, grants: grants))
    case .allow(let key, let question):
      do throws(DeviceError) {
        changed(try devices.allow(key), &turn)
        turn.answer(question, .done)
      } catch {
        turn.answer(question, .deviceRefused(error))
      }
    }
  }

  /// Whether what this device asks is refused: one that an operator turned away acts in no call but one that it has, and in that it reaches nobody
  /// else. Asked for each request: its session, or its token, may be older than the operator's word.
  func isTurnedAway(_ key: DeviceKey, in call: CallID?, _ message: ClientMessage? = nil) -> Bool {
    guard devices.isRevoked(key) else { return false }
    if case .callTransfer = message { return true }
    return call.flatMap { calls[$0]?.winner } != key
  }

  /// Calls of this device that began after it was turned away elsewhere, before that was known here.
  private mutating func endCalls(of key: DeviceKey, since revokedAt: Int64, _ turn: inout Turn) {
    for id in callsOfUser[key.user] ?? [] {
      guard let call = calls[id], call.isLive, !call.ringsDevices, call.winner == key,
        turn.wall(call.times[.start] ?? turn.now) > revokedAt
      else { continue }
      change(id, &turn) { $0.end(.forbidden, by: .gateway, detail: "the device was revoked", &$1) }
    }
  }

  /// The end of a push: the registry may have learnt something, and the call goes on.
  mutating func pushed(_ report: PushReport, _ turn: inout Turn) {
    let changes = devices.finished(report)
    changed(changes, &turn)
    let key = DeviceKey(user: report.key.user, device: report.key.device)
    if !changes.isEmpty { tell(.deviceRefused, key, &turn) }
    let other = devices.targets(of: key.user).first { $0.key == key }?.target
    if report.outcome != .accepted, report.outcome != .failed || report.attempts == 0 {
      calls[report.key.call]?.terminals[key]?.pushRefused()
      tombstones.update(report.key.call, key) { $0.pushRefused() }
    }
    change(report.key.call, &turn) { $0.pushed(report, other: other == report.target ? nil : other, &$1) }
  }

  func changed(_ changes: [DeviceChange], _ turn: inout Turn) {
    if !changes.isEmpty { turn.output.actions.append(.devices(changes)) }
  }

  /// `device.put`.
  mutating func put(_ put: DevicePut, by device: DevicePresence, _ request: RequestToken, _ turn: inout Turn) {
    do throws(DeviceError) {
      let isNew = devices[device.key] == nil
      changed(try devices.put(put, by: device.key, info: device.info, at: turn.wallNow), &turn)
      if isNew { tell(.deviceRegistered, device.key, &turn) }
      turn.answer(request, .ok)
    } catch {
      turn.answer(request, .err(error.failure))
    }
  }

  /// `device.del`: logged out, or the system took the token back.
  mutating func delete(_ key: DeviceKey, _ request: RequestToken, _ turn: inout Turn) {
    changed(devices.delete(key), &turn)
    turn.answer(request, .ok)
    forbidPushes(to: key, &turn)
  }

  private mutating func forbidPushes(to key: DeviceKey, _ turn: inout Turn) {
    for id in callsOfUser[key.user] ?? [] { change(id, &turn) { $0.pushForbidden(key, &$1) } }
  }
}
