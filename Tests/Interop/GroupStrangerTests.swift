import Foundation
import Testing

extension Interop {
  /// A group of foreign programs only: Chromium is the app, baresip and Asterisk are the carriers.
  @Suite(
    .tags(.audio),
    .enabled(
      if: Surroundings.missing == nil && Surroundings.chromium != nil && Surroundings.baresip != nil && Asterisk.missing == nil,
      "\(Asterisk.missing ?? Surroundings.missing ?? "no chromium or no baresip: run Scripts/install test")"), .serialized)
  struct GroupStrangerTests {
    @Test func `Chromium merges a baresip and an Asterisk: one at a time, all sound as they did between two (PESQ)`() async throws
    {
      try await expectGoodAudio { try await merged() }
    }

    private func merged() async throws -> [String] {
      let (app, carrier) = (Self.passage(Speech.app), Self.passage(Speech.telephone))
      let gateway = try await GatewayUnderTest(media: "[ 127.0.0.1, auto ]")
      let asterisk = try await Asterisk(
        [.init(name: "pbx", address: "127.0.0.2", codecs: "ulaw")], gateway: gateway, port: try FreePorts.both())
      let (said, told) = (gateway.folder + "/app.wav", gateway.folder + "/carrier.wav")
      try Speech.write(app, said)
      for path in [told, asterisk.folder + "/passage.wav"] { try Speech.write(carrier, path) }
      let caller = try await SpeakingPage(gateway, says: app)
      let page = caller.page

      let baresip = try Baresip(
        gateway, user: "+15557770001", codec: "PCMU", says: Baresip.silence, console: try FreePorts.udp(),
        ["-e", "/dial sip:+15551230001@127.0.0.1:\(gateway.sip)"])
      try await page.click("answer")
      try await page.wait("heard.length === 1")
      try await caller.say()
      try await caller.listen(to: 0) { try baresip.say(told) }

      let number = "+15556660001"
      _ = try asterisk.said("channel originate PJSIP/+15551230001@pbx extension \(number)@calls")
      try await page.click("hold-accept")
      try await page.wait("heard.length === 2 && trunkline.calls.filter((one) => one.phase === 'connected').length === 2")
      try await caller.say()
      try await caller.listen(to: 1) { try asterisk.redirect("pbx", to: "passage") }

      try await page.click("merge")
      try await page.wait("trunkline.calls.every((one) => one.group !== null && one.isListening && !one.isHeld)")
      // each side speaks twice and the better score counts: a stall of the machine under all these processes is audible, too
      for _ in 0..<2 {
        try await caller.say()
        try await caller.listen(to: 0) { try baresip.say(told) }
        try await caller.listen(to: 1) { try asterisk.redirect("pbx", to: "passage") }
      }

      let pages = [try await caller.heard(0), try await caller.heard(1)]
      for _ in 0..<2 { try await page.evaluate("trunkline.calls.find((one) => one.state !== 'ended').end()") }
      _ = try await gateway.records(2)
      try await page.close()
      try await baresip.quit()
      let (first, second) = (try baresip.heard(), asterisk.heard(number))

      var faults: [String] = []
      /// Scores the passages of `said` in `heard`; adds a fault if there are not `count`, or if the better of the group's two is
      /// more than 0.2 below the score between two (`alone`, by default that of the first passage).
      func compare(_ what: String, _ said: String, _ heard: String, count: Int, alone: Double? = nil) async throws -> Double {
        let scores = try await Peers.passages(said, in: heard, gateway).map(\.pesq)
        guard scores.count == count, let single = alone ?? scores.first, let grouped = scores.suffix(2).max() else {
          faults.append("\(what): \(scores)")
          return 4.5
        }
        print("PESQ \(what): \(single) between two, \(grouped) in the group")
        if grouped < single - 0.2 { faults.append("\(what): \(single) between two, \(grouped) in the group") }
        return single
      }
      _ = try await compare("Chromium → baresip", said, first, count: 3)
      _ = try await compare("Chromium → Asterisk", said, second, count: 3)
      let fromFirst = try await compare("baresip → Chromium", told, pages[0], count: 3)
      let fromSecond = try await compare("Asterisk → Chromium", told, pages[1], count: 3)
      // a side that received its own sound would have more than two passages
      _ = try await compare("baresip → Asterisk", told, second, count: 2, alone: fromFirst)
      _ = try await compare("Asterisk → baresip", told, first, count: 2, alone: fromSecond)
      try await gateway.finish()
      try await asterisk.stop()
      return faults
    }

    private static func passage(_ speech: [Int16]) -> [Int16] { Array(Speech.fromFirstWord(speech).prefix(48_000)) }
  }
}
