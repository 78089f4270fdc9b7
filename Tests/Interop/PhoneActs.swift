import Testing

/// Runs peers/phone_acts.py, which reports the faults of each act on the web phone.
enum PhoneActs {
  static func expect(atLeast count: Int, _ gateway: GatewayUnderTest, _ arguments: [String] = []) async throws {
    let acts = try Peers.python("acts", "phone_acts.py", arguments, gateway)
    #expect(try await acts.finish(within: 400) == 0, "\(acts.text.suffix(6_000))")
    let done = acts.events.filter { $0["event"] as? String == "act" }
    for act in done {
      for fault in act["faults"] as? [String] ?? ["no answer"] { Issue.record("\(act["name"] ?? ""): \(fault)") }
    }
    #expect(done.count >= count, "\(acts.text.suffix(6_000))")
  }
}
