import Foundation
import Testing

/// The sample as an app: its views and extensions compile against the surfaces, and run on the stand-in's iPhone.
@Suite struct SampleAppTests {
  private static let outcome = Result {
    try SurfaceBuild.shared.get().run(
      "sample", with: SurfaceBuild.modules.map(\.0) + SurfaceBuild.sample.map(\.0).filter { $0 != "CallDirectoryExtension" })
  }

  private func expect(_ lines: [String]) throws {
    let outcome = try Self.outcome.get()
    try #require(outcome.status == 0, "\(outcome.text)")
    var rest = outcome.text.components(separatedBy: "\n")[...]
    for line in lines {
      let at = try #require(rest.firstIndex(of: line), "no \"\(line)\" in:\n\(outcome.text)")
      rest = rest[(at + 1)...]
    }
  }

  @Test func `the app's delegate has the phone from the launch on, and its views are drawn`() throws {
    try expect(["launched: true, violations []", "done"])
  }

  @Test func `E2E-1: the sample's notification service extension makes a push of a sealed call, and shows what is none, once`()
    throws
  {
    try expect(["notification: shown", "notification: silent", "shown: Jane Doe, violations []", "notification: shown"])
    let shown = try Self.outcome.get().text.components(separatedBy: "\n").filter { $0.hasPrefix("notification: ") }
    #expect(shown.count == 3, "an extension that is out of time answers once")
  }

  @Test func `REC-2: the sample's intents extension lets the app go on with a call, and wants whom to call`() throws {
    try expect([
      "handler: true", #"contacts: ["+15557654321"]"#, "answer: continueInApp INStartCallIntent", "handler: true",
      #"contacts: [""]"#, "answer: failureContactNotSupportedByApp -", "handler: true", #"contacts: ["wanted"]"#,
      "answer: failureContactNotSupportedByApp -", "other intents: true",
    ])
  }
}
