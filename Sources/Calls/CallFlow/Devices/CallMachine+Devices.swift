import AppSessions
import CallModel
import Devices
import PushPolicy
import TrunklineAppProtocol
import TrunklineBytes

/// The device registry: what apps, operators and push services report of devices, kept in `devices` and sent to the store.
extension CallMachine {
  mutating func handle(_ command: DeviceCommand, _ step: inout Step) {
    switch command {
    case .loaded(let stored):
      // registrations received before the store was read are newer
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
          presences[DeviceKey(user: user, device: device)] != nil
        {
          changed(devices.revoke(connected: DeviceKey(user: user, device: device), at: step.wallNow), &step)
        } else {
          changed(try devices.revoke(user: user, device: device, at: step.wallNow), &step)
        }
        for device in devices.devices(of: user) where device.revokedAt != nil && !before.contains(device.key) {
          report(.deviceRevoked, device.key, &step)
          step.app(.revoke(device.key))
          forbidPushes(to: device.key, &step)
        }
        step.answer(question, .done)
      } catch {
        step.answer(question, .deviceRefused(error))
      }
    case .revokedBefore(let key, let time): endCalls(of: key, since: time, &step)
    case .revokedRemotely(let key):
      guard !devices.isRevoked(key) else { return }
      changed(devices.revoke(connected: key, at: step.wallNow), &step)
      step.app(.revoke(key))
      forbidPushes(to: key, &step)
    case .forget(let user, let question):
      let known = devices.devices(of: user).map(\.key)
      for key in known {
        changed(devices.delete(key), &step)
        forbidPushes(to: key, &step)
      }
      for key in Set(known + presences[user].map(\.key)) { step.app(.revoke(key)) }
      let grants = forgetGrants(of: user, &step)
      step.answer(question, .forgotten(devices: known.count, grants: grants))
    case .allow(let key, let question):
      do throws(DeviceError) {
        changed(try devices.allow(key), &step)
        step.answer(question, .done)
      } catch {
        step.answer(question, .deviceRefused(error))
      }
    }
  }

  /// Whether a request of this device is refused. A revoked device can act only in a call that it has, and cannot transfer that.
  /// Checked for each request: the session or the token may be older than the revocation.
  func isTurnedAway(_ key: DeviceKey, in call: CallID?, _ message: ClientMessage? = nil) -> Bool {
    guard devices.isRevoked(key) else { return false }
    if case .callTransfer = message { return true }
    return call.flatMap { calls[$0]?.winner } != key
  }

  /// Ends calls of this device that began after another node revoked it, before that was known here.
  private mutating func endCalls(of key: DeviceKey, since revokedAt: Int64, _ step: inout Step) {
    for id in calls.ids(of: key.user) {
      guard let call = calls[id], call.isLive, !call.ringsDevices, call.winner == key,
        step.wall(call.times[.start] ?? step.now) > revokedAt
      else { continue }
      change(id, &step) { $0.end(.forbidden, by: .gateway, detail: "the device was revoked", &$1) }
    }
  }

  /// A push ended: the registry may change, and the call continues.
  mutating func pushed(_ report: PushReport, _ step: inout Step) {
    let changes = devices.finished(report)
    changed(changes, &step)
    let key = DeviceKey(user: report.key.user, device: report.key.device)
    if !changes.isEmpty { self.report(.deviceRefused, key, &step) }
    let other = devices.targets(of: key.user).first { $0.key == key }?.target
    if report.outcome != .accepted, report.outcome != .failed || report.attempts == 0 {
      calls.change(report.key.call) { $0.terminals.pushRefused(key) }
      tombstones.update(report.key.call, key) { $0.pushRefused() }
    }
    change(report.key.call, &step) { $0.pushed(report, other: other == report.target ? nil : other, &$1) }
  }

  func changed(_ changes: [DeviceChange], _ step: inout Step) {
    if !changes.isEmpty { step.output.actions.append(.devices(changes)) }
  }

  /// `device.put`.
  mutating func put(_ put: DevicePut, by device: DevicePresence, _ request: RequestToken, _ step: inout Step) {
    do throws(DeviceError) {
      let isNew = devices[device.key] == nil
      changed(try devices.put(put, by: device.key, info: device.info, at: step.wallNow), &step)
      if isNew { report(.deviceRegistered, device.key, &step) }
      step.answer(request, .ok)
    } catch {
      step.answer(request, .err(error.failure))
    }
  }

  /// `device.del`: the device logged out, or the system withdrew its token.
  mutating func delete(_ key: DeviceKey, _ request: RequestToken, _ step: inout Step) {
    changed(devices.delete(key), &step)
    step.answer(request, .ok)
    forbidPushes(to: key, &step)
  }

  private mutating func forbidPushes(to key: DeviceKey, _ step: inout Step) {
    for id in calls.ids(of: key.user) { change(id, &step) { $0.pushForbidden(key, &$1) } }
  }
}
