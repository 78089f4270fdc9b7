import Foundation
import Testing

@testable import TrunklineAppCheck

/// The declarations that an app must have: checked on sources, on bundles, and on folders that are neither.
@Suite struct AppCheckTests {
  private func check(_ fixture: AppFixture) throws -> AppCheck { try AppCheck(path: fixture.root.path) }

  @Test func `CFG-5: an app with its background modes, capabilities and extensions lacks nothing`() throws {
    let check = try check(.good())
    #expect(check.findings == [] && check.notes == [], "\(check.text)")
    #expect(check.files.count == 7 && check.text.hasSuffix("nothing is missing"))
  }

  /// A copy with one fault, and the file and text of its only finding.
  struct Broken: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let file: String
    let says: [String]
    let change: @Sendable (AppFixture) throws -> Void
    init(_ name: String, _ file: String, _ says: [String], _ change: @escaping @Sendable (AppFixture) throws -> Void) {
      (testDescription, self.file, self.says, self.change) = (name, file, says, change)
    }
  }

  static let broken = [
    Broken("no background mode voip", "App/Info.plist", ["UIBackgroundModes lacks `voip`", "R21", "add"]) {
      try $0.replace("<string>voip</string>", "", in: "App/Info.plist")
    },
    Broken("no background mode audio", "App/Info.plist", ["UIBackgroundModes lacks `audio`"]) {
      try $0.replace("<string>audio</string>", "", in: "App/Info.plist")
    },
    Broken("no background modes at all", "App/Info.plist", ["UIBackgroundModes is missing", "R21", "`voip` and `audio`"]) {
      try $0.replace("UIBackgroundModes", "UIModes", in: "App/Info.plist")
    },
    Broken("no microphone text", "App/Info.plist", ["NSMicrophoneUsageDescription is missing"]) {
      try $0.replace("NSMicrophoneUsageDescription", "Other", in: "App/Info.plist")
    },
    Broken("an empty microphone text", "App/Info.plist", ["NSMicrophoneUsageDescription is empty"]) {
      try $0.replace("Your voice is sent to whom you talk to.", " ", in: "App/Info.plist")
    },
    Broken("Recents cannot call", "App/Info.plist", ["NSUserActivityTypes lacks `INStartCallIntent`"]) {
      try $0.replace("NSUserActivityTypes", "Other", in: "App/Info.plist")
    },
    Broken("no push capability", "App/Phone.entitlements", ["aps-environment is missing", "Push Notifications"]) {
      try $0.replace("aps-environment", "other", in: "App/Phone.entitlements")
    },
    Broken("a push environment that is none", "App/Phone.entitlements", ["aps-environment is sandbox"]) {
      try $0.replace("development", "sandbox", in: "App/Phone.entitlements")
    },
    Broken("the Call Directory has no app group", "Directory/Info.plist", ["no .entitlements", "application-groups"]) {
      try $0.remove("Directory/Directory.entitlements")
    },
    Broken("the Call Directory has another group", "Directory/Directory.entitlements", ["group.other", "group.example.phone"]) {
      try $0.replace("group.example.phone", "group.other", in: "Directory/Directory.entitlements")
    },
    Broken(
      "the app has no group", "App/Phone.entitlements", ["application-groups", "add the extension's group group.example.phone"]
    ) {
      try $0.replace("com.apple.security.application-groups", "other", in: "App/Phone.entitlements")
    },
    Broken(
      "a misspelt extension point", "Directory/Info.plist",
      ["com.apple.callkit.calldirectory", "com.apple.callkit.call-directory is meant"]
    ) {
      try $0.replace("callkit.call-directory", "callkit.calldirectory", in: "Directory/Info.plist")
    },
    Broken("an extension without its point", "Intents/Info.plist", ["NSExtension has no NSExtensionPointIdentifier"]) {
      try $0.replace("NSExtensionPointIdentifier", "Other", in: "Intents/Info.plist")
    },
    Broken("an extension without its class", "Directory/Info.plist", ["NSExtensionPrincipalClass"]) {
      try $0.replace("NSExtensionPrincipalClass", "Other", in: "Directory/Info.plist")
    },
    Broken("an intent that is not supported", "Intents/Info.plist", ["IntentsSupported lacks `INStartCallIntent`"]) {
      try $0.replace("<string>INStartCallIntent</string>", "<string>INSendMessageIntent</string>", in: "Intents/Info.plist")
    },
    Broken("Siri is not allowed", "App/Phone.entitlements", ["com.apple.developer.siri is missing"]) {
      try $0.replace("com.apple.developer.siri", "other", in: "App/Phone.entitlements")
    },
    Broken(
      "the extension may not filter", "Service/Service.entitlements",
      ["usernotifications.filtering is missing", "R15", "error 2"]
    ) {
      try $0.replace("com.apple.developer.usernotifications.filtering", "other", in: "Service/Service.entitlements")
    },
    Broken("the extension cannot read the key", "Service/Service.entitlements", ["keychain-access-groups", "the app's key"]) {
      try $0.replace("keychain-access-groups", "other", in: "Service/Service.entitlements")
    },
    // wrong types
    Broken("background modes are a string", "App/Info.plist", ["UIBackgroundModes is a string, and must be an array of strings"])
    {
      try $0.replace(
        "<key>UIBackgroundModes</key><array><string>voip</string><string>audio</string></array>",
        "<key>UIBackgroundModes</key><string>voip</string>", in: "App/Info.plist")
    },
    Broken("background modes are numbers", "App/Info.plist", ["UIBackgroundModes is an array, and must be an array of strings"]) {
      try $0.replace("<string>voip</string>", "<integer>1</integer>", in: "App/Info.plist")
    },
    Broken(
      "the microphone text is a boolean", "App/Info.plist", ["NSMicrophoneUsageDescription is a boolean, and must be a string"]
    ) {
      try $0.replace("<string>Your voice is sent to whom you talk to.</string>", "<true/>", in: "App/Info.plist")
    },
    Broken("the push environment is a number", "App/Phone.entitlements", ["aps-environment is a number, and must be a string"]) {
      try $0.replace("<string>development</string>", "<integer>1</integer>", in: "App/Phone.entitlements")
    },
    Broken("the filtering flag is a string", "Service/Service.entitlements", ["filtering is a string, and must be a boolean"]) {
      try $0.replace("<true/>", "<string>YES</string>", in: "Service/Service.entitlements")
    },
    Broken("the filtering flag is a number", "Service/Service.entitlements", ["filtering is a number, and must be a boolean"]) {
      try $0.replace("<true/>", "<integer>1</integer>", in: "Service/Service.entitlements")
    },
    Broken(
      "the groups are a string", "App/Phone.entitlements", ["application-groups is a string, and must be an array of strings"]
    ) {
      try $0.replace(
        "<array><string>group.example.phone</string></array>", "<string>group.example.phone</string>",
        in: "App/Phone.entitlements")
    },
    Broken("the extension is a string", "Intents/Info.plist", ["NSExtension is a string, and must be a dictionary"]) {
      try $0.write("Intents/Info.plist", AppFixture.plist("<key>NSExtension</key><string>com.apple.intents-service</string>"))
    },
    Broken("the extension point is an array", "Directory/Info.plist", ["NSExtensionPointIdentifier is an array"]) {
      try $0.replace("<string>com.apple.callkit.call-directory</string>", "<array/>", in: "Directory/Info.plist")
    },
  ]

  @Test(arguments: Self.broken) func `CFG-5, R21: a broken copy names the file, what is wrong, and nothing else`(copy: Broken)
    throws
  {
    let fixture = try AppFixture.good()
    try copy.change(fixture)
    let check = try check(fixture)
    let finding = try #require(check.findings.first, "\(check.text)")
    #expect(check.findings.count == 1 && finding.file == copy.file, "\(check.text)")
    for words in copy.says { #expect(finding.text.contains(words), "\(finding.text)") }
    #expect(check.text.contains("missing  \(copy.file): \(finding.text)") && check.text.hasSuffix("1 thing is missing or wrong"))
  }

  @Test func `an unused feature is a note, and an extension of another kind is ignored`() throws {
    let fixture = try AppFixture.good()
    for folder in ["Directory", "Intents", "Service"] { try fixture.remove(folder) }
    try fixture.write(
      "Widget/Info.plist",
      AppFixture.plist(
        "<key>NSExtension</key><dict><key>NSExtensionPointIdentifier</key><string>com.apple.widgetkit-extension</string></dict>"))
    let check = try check(fixture)
    #expect(check.findings == [] && check.notes.count == 3, "\(check.text)")
    // a notification service extension that makes no pushes needs no entitlement for it
    try fixture.write("Service/Info.plist", AppFixture.service)
    try fixture.write(
      "Service/Service.entitlements", AppFixture.serviceEntitlements.replacingOccurrences(of: "filtering", with: "x"))
    #expect(try self.check(fixture).findings == [])
  }

  @Test func `several targets in one folder have the entitlements of their names`() throws {
    let fixture = try AppFixture()
    try fixture.write("Info.plist", AppFixture.info)
    try fixture.write("Phone.entitlements", AppFixture.entitlements)
    try fixture.write("Directory-Info.plist", AppFixture.directory)
    try fixture.write("Directory.entitlements", AppFixture.directoryEntitlements)
    #expect(try check(fixture).findings == [])
  }

  // MARK: bundles

  /// The entitlements as codesign appends them to an executable's code: magic, length, XML.
  private func signed(_ entitlements: String) -> Data {
    let text = Data(entitlements.utf8)
    let length = UInt32(text.count + 8)
    let head: [UInt8] = [0xFA, 0xDE, 0x71, 0x71] + (0..<4).map { UInt8(truncatingIfNeeded: length >> (24 - 8 * UInt32($0))) }
    // the magic's four bytes within the code, and the selector that it calls
    return Data([0xCF, 0xFA, 0xED, 0xFE] + head[..<4] + [0, 0, 0, 3]) + Data("reportNewIncomingVoIPPushPayload:completion:".utf8)
      + Data(head) + text + Data(repeating: 0, count: 100)
  }

  private func binary(_ plist: String) throws -> Data {
    let values = try PropertyListSerialization.propertyList(from: Data(plist.utf8), format: nil)
    return try PropertyListSerialization.data(fromPropertyList: values, format: .binary, options: 0)
  }

  private func bundle(_ service: String = AppFixture.serviceEntitlements) throws -> AppFixture {
    let fixture = try AppFixture()
    try fixture.write("Phone.app/Info.plist", try binary(AppFixture.info))
    try fixture.write("Phone.app/Phone", signed(AppFixture.entitlements))
    try fixture.write("Phone.app/PlugIns/Service.appex/Info.plist", try binary(AppFixture.service))
    try fixture.write("Phone.app/PlugIns/Service.appex/Service", signed(service))
    return fixture
  }

  @Test func `a built bundle is read with binary property lists and the entitlements of its signatures`() throws {
    let fixture = try bundle()
    let check = try AppCheck(path: fixture.root.path + "/Phone.app")
    #expect(check.findings == [] && check.files.contains("PlugIns/Service.appex/Info.plist"), "\(check.text)")
    let bad = try bundle(AppFixture.serviceEntitlements.replacingOccurrences(of: "<true/>", with: "<false/>"))
    #expect(
      try AppCheck(path: bad.root.path + "/Phone.app").findings.map(\.file) == [
        "PlugIns/Service.appex: entitlements of its signature"
      ])
  }

  @Test func `without a signature the provisioning profile lists the entitlements; without both a finding reports it`() throws {
    let fixture = try bundle()
    try fixture.write("Phone.app/Phone", "code")
    let findings = try AppCheck(path: fixture.root.path + "/Phone.app").findings
    #expect(findings.contains { $0.text.contains("its signature has no entitlements") })
    let inner = AppFixture.entitlements.components(separatedBy: "<plist version=\"1.0\">")[1].replacingOccurrences(
      of: "</plist>", with: "")
    let profile = AppFixture.plist("<key>Entitlements</key>\(inner)")
    try fixture.write("Phone.app/embedded.mobileprovision", Data([0x30, 0x82, 0xFF]) + Data(profile.utf8) + Data([0xA0, 0x00]))
    #expect(try AppCheck(path: fixture.root.path + "/Phone.app").findings == [])
  }

  // MARK: invalid files and folders

  @Test(arguments: [
    ("", "is empty"), ("not a list", "is not a property list (neither XML nor binary)"),
    ("<?xml version=\"1.0\"?>\n<plist>\n<dict>\n<key>UIBackgroundModes</key>", "line 4: the XML ends before </plist>"),
    ("<?xml version=\"1.0\"?><plist version=\"1.0\"><dict><key>a</dict></plist>", "is not a well-formed property list"),
    ("<?xml version=\"1.0\"?><plist version=\"1.0\"><array/></plist>", "holds an array, where a dictionary must be"),
    ("bplist00\u{1}\u{2}\u{3}", "is not a property list"),
  ])
  func `an invalid Info.plist is refused with its name and what to do`(text: String, says: String) throws {
    let fixture = try AppFixture.good()
    try fixture.write("App/Info.plist", text)
    let problem = #expect(throws: AppCheck.Problem.self) { try check(fixture) }
    #expect(problem?.file == "App/Info.plist" && problem?.text.contains(says) == true, "\(String(describing: problem))")
  }

  @Test func `a folder without an app, a file, and a missing path are refused`() throws {
    let fixture = try AppFixture()
    #expect(throws: AppCheck.Problem.self) { try check(fixture) }
    try fixture.write("Directory/Info.plist", AppFixture.directory)
    let problem = #expect(throws: AppCheck.Problem.self) { try check(fixture) }
    #expect(problem?.text.contains("no Info.plist of an app") == true)
    #expect(throws: AppCheck.Problem.self) { try AppCheck(path: fixture.root.path + "/Directory/Info.plist") }
    #expect(throws: AppCheck.Problem.self) { try AppCheck(path: "/nowhere/at/all") }
  }

  // MARK: imports

  @Test func `an import of an inner module is reported with its line, a product's is not`() throws {
    let fixture = try AppFixture.good()
    try fixture.write(
      "App/Phone.swift",
      """
      import SwiftUI
      import TrunklineCallKit
      @testable import TrunklineClient; // import TrunklineSTUN
      // import TrunklineSRTP
      import struct TrunklineMediaSession.AudioReceiver
        internal import CTrunklineOpus
      let text = "import TrunklineICE"
      import TrunklineBytes
      """)
    let says = "which is not a product and may change with each version: import TrunklineCallKit or TrunklineClient"
    #expect(
      try check(fixture).findings.map { "\($0.file) \($0.text)" } == [
        "App/Phone.swift:5 imports TrunklineMediaSession, \(says)", "App/Phone.swift:6 imports CTrunklineOpus, \(says)",
      ])
  }

  // MARK: the sample

  /// `Examples/SamplePhone` as an iOS team would have it.
  @Test func `CFG-5: the sample app lacks nothing`() throws {
    let sample = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Examples/SamplePhone")
    let infos = AppFiles.files(below: sample) { $0.lastPathComponent == "Info.plist" }
    // its Apple half comes with another change; from then on it must hold
    guard !infos.isEmpty else { return }
    let check = try AppCheck(path: sample.path)
    #expect(check.findings == [] && check.notes == [], "\(check.text)")
  }
}
