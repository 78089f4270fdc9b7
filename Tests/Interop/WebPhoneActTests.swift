import Testing

extension Interop {
  /// Acts of a person on the web phone, over a stand-in of the package: ends, notices, waiting and merged calls, the keyboard,
  /// devices, names, as seen, spoken and heard. In one browser, beside the other suites of the page.
  @Suite(
    .enabled(
      if: Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.chromium != nil),
      "no chromium or no .venv: run Scripts/install test"))
  struct WebPhoneActTests {
    @Test func `what a person does is seen, spoken and within reach of the keyboard`() async throws {
      let gateway = try await GatewayUnderTest()
      try await PhoneActs.expect(atLeast: 40, gateway)
      try await gateway.finish()
    }
  }
}
