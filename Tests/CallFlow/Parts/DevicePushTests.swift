import AppSessions
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet

@Suite struct DevicePushTests {
  private let target = PushTarget(.apns, token: "aa")
  private let other = PushTarget(.apns, token: "bb")
  private let remote = RemoteDevice(phone, at: "n1")

  private func opened() -> DevicePushes {
    var pushes = DevicePushes()
    pushes.open()
    return pushes
  }
  /// Of a phone without a session, that was pushed to at 1 s.
  private func pushed() -> DevicePushes {
    var (pushes, step) = (opened(), Step.at(1, pushes: true))
    holds(pushes.watch(phone, target, &step) == [.push(phone, target)])
    return pushes
  }
  private func presence(_ state: AppState = .fg) -> DevicePresence {
    DevicePresence(key: phone, session: SessionID("s"), info: DeviceInfo(platform: "ios", state: state))
  }
  private func report(_ outcome: PushReport.Outcome, of target: PushTarget? = nil, attempts: Int = 1) -> PushReport {
    let key = PushKey(call: CallID(random: .seeded(1)), user: phone.user, device: phone.device)
    return PushReport(key: key, target: target ?? self.target, outcome: outcome, reason: "why", attempts: attempts)
  }

  @Test func `a connected device is pushed to after 1,5 s, or 3 s after its offer if it acks, and not once it rings`() {
    for (acks, rings, due) in [(false, false, 2.5), (true, false, 4), (true, true, nil)] as [(Bool, Bool, Double?)] {
      var (pushes, step) = (opened(), Step.at(1, pushes: true))
      #expect(pushes.watch(phone, target, presence: presence(), &step) == [] && pushes.next == DueTimer(.push, seconds(2.5)))
      if acks { pushes.offerAcked(phone) }
      if rings { pushes.settled(phone) }
      #expect(pushes.next == DueTimer(.push, due.map(seconds)) && !pushes.hasWoken)
      guard let due else { continue }
      step = .at(due, pushes: true)
      holds(pushes.expired(isConnected: { _ in true }, &step) == [.push(phone, target)] && pushes.next == nil)
      #expect(pushes.hasWoken && pushes.shown == [phone] && pushes.isUnderWay)
    }
  }

  @Test func `iOS in the background is pushed to beside its offer, at most once`() {
    var (pushes, step) = (opened(), Step.at(1, pushes: true))
    #expect(pushes.watch(phone, target, presence: presence(.bg), &step) == [.push(phone, target)])
    #expect(pushes.inBackground(presence(.bg), &step) == [] && pushes.watch(phone, target, &step) == [], "once a device")
    pushes.offered(phone, step)
    pushes.offerAcked(phone)
    pushes.disconnected(phone, rang: true, step)
    #expect(pushes.next == nil && pushes.forbidden(phone) == [])
  }

  @Test func `an accepted push is the last, and 180 follows once, unless the trunk has it`() {
    for rings in [true, false] {
      var (pushes, step) = (pushed(), Step.at(1, pushes: true))
      #expect(pushes.ended(report(.accepted), other: other, rings: rings, &step) == [.accepted])
      #expect(pushes.next?.timer == (rings ? nil : .early180))
      pushes.early180Expired()
      // the report again, and others that come late
      for outcome in [PushReport.Outcome.accepted, .failed, .tokenMismatch] {
        #expect(pushes.ended(report(outcome), other: other, rings: false, &step) == [])
      }
      #expect(pushes.next == nil && pushes.awaits { $0 == phone } && pushes.shown == [phone])
    }
  }

  @Test func `a refusal for certain moves to another registration, once for each; any other end is the last`() {
    var (pushes, step) = (pushed(), Step.at(1, pushes: true))
    #expect(
      pushes.ended(report(.unregistered(before: nil)), other: other, rings: false, &step) == [
        .failed("why"), .push(phone, other),
      ])
    #expect(pushes.ended(report(.tokenMismatch, of: other), other: other, rings: false, &step) == [.failed("why"), .lost])
    #expect(pushes.failure == "why" && pushes.shown == [] && !pushes.awaits { _ in true })
    for (attempts, isLast) in [(0, false), (1, true)] {
      (pushes, step) = (pushed(), .at(1, pushes: true))
      let effects = pushes.ended(report(.failed, attempts: attempts), other: other, rings: false, &step)
      #expect(effects == (isLast ? [.failed("why"), .lost] : [.failed("why"), .push(phone, other)]))
      #expect(pushes.mayShow(phone), "a push without an answer may have arrived")
    }
  }

  @Test func `a report for a device that was not pushed to, or of none, changes nothing`() {
    var (pushes, step) = (opened(), Step.at(1, pushes: true))
    #expect(pushes.ended(report(.accepted), other: nil, rings: false, &step) == [])
    _ = pushes.watch(phone, target, presence: presence(), &step)
    #expect(pushes.ended(report(.failed), other: other, rings: false, &step) == [] && pushes.failure == nil)
    for key in [tablet, phone] {
      pushes.settled(key)
      pushes.offerAcked(key)
      pushes.offered(key, step)
    }
    #expect(pushes.next == nil && pushes.forbidden(tablet) == [])
  }

  @Test func `a device at another node is woken five times without a target, and pushed to with one`() {
    var (pushes, step) = (opened(), Step.at(1, pushes: true))
    #expect(pushes.watch(phone, nil, remote: remote, &step) == [.wake(phone, node: "n1")])
    for count in 1...5 {
      step = .at(1 + Double(count) * 2, pushes: true)
      let effects = pushes.expired(isConnected: { _ in false }, &step)
      #expect(effects == (count < 5 ? [.wake(phone, node: "n1")] : [.lost]), "\(count)")
    }
    #expect(pushes.next == nil && pushes.failure == "did not come from its node")
    (pushes, step) = (opened(), .at(1, pushes: true))
    #expect(pushes.watch(phone, target, remote: remote, &step) == [.wake(phone, node: "n1")])
    step = .at(2.5, pushes: true)
    #expect(pushes.expired(isConnected: { _ in false }, &step) == [.push(phone, target)])
    #expect(step.statistics.wakesFallenBack == 1)
  }

  @Test func `a device that logs in at another node is woken there; one that came is not woken again`() {
    var (pushes, step) = (opened(), Step.at(1, pushes: true))
    #expect(pushes.connected(elsewhere: remote, &step) == nil)
    _ = pushes.watch(phone, nil, remote: remote, &step)
    #expect(pushes.connected(presence(), isNew: true, rings: false, &step) == [] && step.statistics.wakesCome == 1)
    step = .at(4, pushes: true)
    #expect(pushes.expired(isConnected: { _ in true }, &step) == [] && pushes.next == nil)
    #expect(pushes.connected(elsewhere: RemoteDevice(phone, at: "n2"), &step) == [.wake(phone, node: "n2")])
  }

  @Test func `a socket that is lost makes a push due: at once, or after the time of a reconnect if the device rang`() {
    for (rang, due) in [(false, 2.0), (true, 3.5)] {
      var (pushes, step) = (opened(), Step.at(1, pushes: true))
      _ = pushes.watch(phone, target, presence: presence(), &step)
      pushes.settled(phone)
      pushes.disconnected(phone, rang: rang, .at(2, pushes: true))
      #expect(pushes.next?.at == seconds(due))
    }
  }

  @Test func `a device that connects after its push is measured once`() {
    var (pushes, step) = (pushed(), Step.at(2, pushes: true))
    #expect(pushes.connected(presence(), isNew: false, rings: false, &step) == [])
    #expect(pushes.connected(presence(), isNew: true, rings: false, &step) == [.connected(after: .seconds(1))])
    #expect(pushes.connected(presence(), isNew: true, rings: false, &step) == [])
  }

  @Test func `before open and after close nothing is due or sent, whatever devices do`() {
    for isBefore in [true, false] {
      var (pushes, step) = (DevicePushes(), Step.at(1, pushes: true))
      if !isBefore { pushes = opened() }
      #expect(pushes.watch(phone, target, presence: presence(), &step) == [])
      pushes.close()
      pushes.close()
      pushes.offerAcked(phone)
      pushes.offered(phone, step)
      pushes.disconnected(phone, rang: false, step)
      #expect(pushes.next == nil && pushes.forbidden(phone) == [] && pushes.connected(elsewhere: remote, &step) == [])
      #expect(
        pushes.connected(presence(.bg), isNew: true, rings: false, &step) == [] && pushes.inBackground(presence(.bg), &step) == []
      )
      #expect(pushes.watch(tablet, target, &step) == [] && pushes.next == nil && !pushes.hasWoken)
    }
  }

  @Test func `a push that ends after close counts, and no other registration is tried`() {
    var (pushes, step) = (pushed(), Step.at(1, pushes: true))
    pushes.close()
    #expect(pushes.isUnderWay && pushes.shown == [phone])
    #expect(pushes.ended(report(.unregistered(before: nil)), other: other, rings: false, &step) == [.failed("why"), .lost])
    #expect(pushes.shown == [])
  }

  @Test func `pushes that are switched off while one is due lose the device`() {
    var (pushes, step) = (opened(), Step.at(1, pushes: true))
    _ = pushes.watch(phone, target, presence: presence(), &step)
    step = .at(2.5, pushes: false)
    holds(pushes.expired(isConnected: { _ in true }, &step) == [.lost] && pushes.next == nil)
  }

  @Test func `other devices start anew, and what is known of the call's pushes stays`() {
    var pushes = pushed()
    pushes.removeAll()
    #expect(pushes.hasWoken && pushes.shown == [] && pushes.count == 0 && !pushes.isUnderWay)
    var step = Step.at(2, pushes: true)
    #expect(pushes.watch(phone, target, presence: presence(), &step) == [] && pushes.next == nil, "not before they ring")
    pushes.open()
    #expect(pushes.next?.at == seconds(3.5))
  }
}
