import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import TrunklineClientMachines

@Suite struct OpenRequestsTests {
  private let action = SystemActionID(4)

  @Test func `an answer has its purpose once, and an unknown or repeated one has none`() {
    var requests = OpenRequests()
    holds(requests.answered(id(1)) == nil)
    requests.add(id(1), .probe(id(9)))
    holds(requests.answered(id(2)) == nil)
    guard case .probe(id(9))? = requests.answered(id(1)) else { return #expect(Bool(false), "no probe") }
    holds(requests.answered(id(1)) == nil)
  }

  @Test func `an answer with media closes a call's own request, and no other`() {
    var requests = OpenRequests()
    requests.add(id(1), .message(of: id(9), .restart))
    requests.add(id(2), .hold(id(9), isOn: true, action))
    for question in [id(1), id(1), id(2), id(3)] { requests.mediaAnswered(question) }
    holds(requests.answered(id(1)) == nil && requests.answered(id(2)) != nil)
  }

  @Test func `a request of a kind is open for its own call only, until it is answered`() {
    var requests = OpenRequests()
    requests.add(id(1), .message(of: id(9), .mute))
    #expect(requests.isOpen(.mute, of: id(9)) && !requests.isOpen(.mute, of: id(8)) && !requests.isOpen(.prepare, of: id(9)))
    _ = requests.answered(id(1))
    #expect(!requests.isOpen(.mute, of: id(9)))
  }

  @Test func `the actions of an ended call fail once, in their order; its other requests are still answered`() {
    var requests = OpenRequests()
    holds(requests.callEnded(id(9)) == [])
    for (number, raw) in [(1, 7), (2, 3), (3, 5)] as [(UInt64, Int)] {
      requests.add(id(number), .hold(id(9), isOn: true, SystemActionID(raw)))
    }
    requests.add(id(4), .group(id(9), with: id(8), SystemActionID(4)))
    requests.add(id(5), .hold(id(8), isOn: true, SystemActionID(1)))
    requests.add(id(6), .message(of: id(9), .end))
    holds(requests.callEnded(id(9)) == [3, 4, 5, 7].map(SystemActionID.init) && requests.callEnded(id(9)) == [])
    holds(requests.answered(id(1)) == nil && requests.answered(id(5)) != nil && requests.answered(id(6)) != nil)
  }

  @Test func `an action that the system gave up is returned once, and another one is not`() {
    var requests = OpenRequests()
    requests.add(id(1), .hold(id(9), isOn: true, action))
    requests.add(id(2), .group(id(9), with: nil, SystemActionID(5)))
    holds(requests.timedOut(SystemActionID(6)).isEmpty)
    guard case .hold(id(9), isOn: true, action)? = requests.timedOut(action).first else { return #expect(Bool(false), "no hold") }
    holds(requests.timedOut(action).isEmpty && requests.answered(id(1)) == nil && requests.answered(id(2)) != nil)
  }

  @Test func `after the system's reset no action is completed`() {
    var requests = OpenRequests()
    requests.add(id(1), .hold(id(9), isOn: true, action))
    requests.add(id(2), .probe(id(9)))
    requests.systemReset()
    holds(requests.callEnded(id(9)) == [] && requests.answered(id(1)) == nil && requests.answered(id(2)) != nil)
  }

  @Test func `the end of a session closes its calls' requests, not those of other sessions, and no system action`() {
    var requests = OpenRequests()
    requests.add(id(1), .message(of: id(9), .prepare))
    requests.add(id(2), .probe(id(9)))
    requests.add(id(3), .message(of: id(8), .prepare))
    requests.add(id(4), .hold(id(9), isOn: true, action))
    requests.sessionEnded { $0 == id(8) }
    holds(requests.answered(id(1)) == nil && requests.answered(id(2)) == nil)
    holds(requests.answered(id(3)) != nil && requests.answered(id(4)) != nil)
  }

  @Test func `reads fail with the phone's own session, once, in the order of their numbers`() {
    var requests = OpenRequests()
    holds(requests.ownSessionEnded() == [])
    for number in [3, 1, 2] { requests.add(id(UInt64(number)), .read(number)) }
    requests.add(id(4), .probe(id(9)))
    _ = requests.answered(id(2))
    holds(requests.ownSessionEnded() == [1, 3] && requests.ownSessionEnded() == [] && requests.answered(id(4)) != nil)
  }
}
