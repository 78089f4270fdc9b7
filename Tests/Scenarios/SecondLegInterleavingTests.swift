import CallFlow
import Testing
import TrunklineBytes

/// The interleavings of a call with a second trunk leg: hold from either end, offers that meet, hang-up that crosses an answer, a number
/// that fails at every step; of a diversion and of a transfer.
@Suite struct SecondLegInterleavingTests {
  @Test func `INV: a call that goes on to a number, with hold and hang-up of either end in every order`() {
    var play = Play(["phone"], connected: ["phone"], rules: [.noAnswer: .init(.number(Play.mobile, showsCaller: true))])
    play.apply(.timeout, resuming: false)
    var orders = Orders()
    for gap in [0, 700] {
      orders.explore(
        play, [.rings, .talks, .answers, .fails, .numberHolds, .callerHolds, .crosses, .cancel, .hangsUp, .drop(0), .back(0)],
        gap: .milliseconds(gap), resuming: gap == 0, depth: 5)
    }
    orders.expect(orders: 1_000, won: 0, reasons: ["callerCancelled", "unanswered", "remoteHangup"])
    orders.expect(["CANCEL number", "BYE number", "BYE", "183"])
  }

  @Test func `INV: a transfer, with hold, glare and hang-up of either end in every order`() {
    var play = Play(["phone"], connected: ["phone"])
    for step in [Step.offer(0), .tap(0), .ready(0)] { play.apply(step, resuming: false) }
    play.pass(.milliseconds(20))
    var orders = Orders()
    for gap in [0, 3_000] {
      orders.explore(
        play,
        [
          .refers, .rings, .talks, .answers, .refuses, .fails, .numberHolds, .callerHolds, .glare, .crosses, .cancel, .hangsUp,
          .drop(0),
        ],
        gap: .milliseconds(gap), resuming: false, depth: 4)
    }
    orders.expect(orders: 800, won: 800, reasons: ["remoteHangup"])
    orders.expect(["NOTIFY 180", "NOTIFY 200", "NOTIFY 486", "INVITE \(Play.mobile)", "491"])
  }
}
