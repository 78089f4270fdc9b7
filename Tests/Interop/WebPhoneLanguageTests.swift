import Testing

extension Interop {
  /// The web phone's languages, over a stand-in of the package: in one browser, beside the other suites of the page.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.chromium != nil),
      "no chromium or no .venv: run Scripts/install test"))
  struct WebPhoneLanguageTests {
    @Test func `every text of every state is one of the table, and the longest languages fit the smallest screen`() async throws {
      let gateway = try await GatewayUnderTest()
      let states = try Peers.python("states", "phone_states.py", ["--texts"], gateway)
      #expect(try await states.finish(within: 600) == 0, "\(states.text.suffix(6_000))")
      let looked = states.events.filter { $0["event"] as? String == "state" }
      for language in ["en-US", "de-AT", "fr", "es"] {
        let own = looked.filter { $0["language"] as? String == language }
        #expect(Set(own.compactMap { $0["state"] as? String }).count >= 44, "\(language)")
        for look in own where (look["faults"] as? [String])?.isEmpty != true {
          Issue.record("\(language): \(look["state"] ?? ""): \(look["faults"] ?? "no answer")")
        }
      }
      try await gateway.finish()
    }
  }
}
