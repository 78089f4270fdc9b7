import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import TrunklineClientMachines

@Suite struct TestCallTests {
  private func active() -> ClientTestCall {
    var test = ClientTestCall()
    holds(test.dial(id(1), until: seconds(20))?.actions.count == 1)
    return test
  }

  @Test func `nothing is handled without a call, and a second call is not made`() {
    var test = ClientTestCall()
    holds(test.handle(.hangUp()) == nil && test.lose() == nil && test.id == nil && test.deadline == nil)
    test = active()
    holds(test.dial(id(2), until: seconds(30)) == nil && test.id == id(1) && test.deadline == seconds(20))
  }

  @Test func `the outcome is given once, and the next call may begin`() {
    var test = active()
    var over = CallOver(.remoteHangup)
    over.received = StreamStats()
    holds(test.handle(.message(.callConnected(CallConnected(at: 1, codec: "opus"))))?.outcome == nil)
    holds(test.handle(.message(.callEnded(over)))?.outcome == .ended(.remoteHangup, codec: "opus", received: StreamStats()))
    holds(test.handle(.message(.callEnded(over))) == nil && test.id == nil && test.dial(id(2), until: seconds(30)) != nil)
  }

  @Test func `a refusal is another outcome than an end`() {
    var test = active()
    holds(test.handle(.answered(.start, .failure(Failure(.overload))))?.outcome == .refused(.overload))
    test = active()
    holds(test.handle(.hangUp())?.outcome == .ended(.localEnd, codec: nil, received: nil))
  }

  @Test func `a lost call is returned once`() {
    var test = active()
    holds(test.lose() == id(1) && test.lose() == nil && test.handle(.hangUp()) == nil)
  }
}
