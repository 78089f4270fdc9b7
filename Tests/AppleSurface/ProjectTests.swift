import Foundation
import Testing
import Yams

/// The sample's property lists and its XcodeGen project: that they are what they say, and fit each other and the sources.
@Suite struct ProjectTests {
  private static let sample = SurfaceBuild.root + "/Examples/SamplePhone"
  private typealias Fields = [String: Any]

  /// By Foundation, and by Python's plistlib, which is another reader.
  private func list(_ path: String) throws -> Fields {
    let file = "\(Self.sample)/\(path)"
    let outcome = try SurfaceBuild.run("python3", ["-c", "import plistlib, sys; plistlib.load(open(sys.argv[1], 'rb'))", file])
    #expect(outcome.status == 0, "\(outcome.text)")
    let data = try Data(contentsOf: URL(fileURLWithPath: file))
    return try #require(try PropertyListSerialization.propertyList(from: data, format: nil) as? Fields)
  }

  private struct Target {
    var name: String
    var fields: [String: Any]
    var settings: [String: Any] { (fields["settings"] as? [String: Any])?["base"] as? [String: Any] ?? [:] }
    var identifier: String { settings["PRODUCT_BUNDLE_IDENTIFIER"] as? String ?? "" }
    var information: String { settings["INFOPLIST_FILE"] as? String ?? "" }
    var entitlements: String? { settings["CODE_SIGN_ENTITLEMENTS"] as? String }
    var sources: [String] { fields["sources"] as? [String] ?? [] }
    var dependencies: [[String: String]] { fields["dependencies"] as? [[String: String]] ?? [] }
  }

  private func targets() throws -> [String: Target] {
    let text = try String(contentsOfFile: Self.sample + "/project.yml", encoding: .utf8)
    let project = try #require(try Yams.load(yaml: text) as? Fields)
    let found = try #require(project["targets"] as? [String: Fields])
    return found.reduce(into: [:]) { $0[$1.key] = Target(name: $1.key, fields: $1.value) }
  }

  @Test func `every file that the project names is there, and every product and target`() throws {
    let targets = try targets()
    #expect(targets.count == 4)
    let manifests = try ["", "/../.."].map { try String(contentsOfFile: "\(Self.sample)\($0)/Package.swift", encoding: .utf8) }
    for target in targets.values {
      for path in target.sources + [target.information] + [target.entitlements].compactMap({ $0 }) {
        #expect(FileManager.default.fileExists(atPath: "\(Self.sample)/\(path)"), "\(target.name): \(path)")
      }
      for dependency in target.dependencies {
        if let name = dependency["target"] { #expect(targets[name] != nil, "\(name)") }
        if let product = dependency["product"] { #expect(manifests.contains { $0.contains("\"\(product)\"") }, "\(product)") }
      }
    }
    let embedded = Set(try #require(targets["SamplePhoneApp"]).dependencies.compactMap { $0["target"] })
    #expect(embedded == Set(targets.keys).subtracting(["SamplePhoneApp"]), "an extension that is not in the app does nothing")
  }

  @Test func `the app says what CallKit, PushKit, Siri and the microphone want`() throws {
    let app = try #require(try targets()["SamplePhoneApp"])
    let information = try list(app.information)
    #expect(Set(information["UIBackgroundModes"] as? [String] ?? []) == ["voip", "audio", "remote-notification"])
    #expect(information["NSUserActivityTypes"] as? [String] == ["INStartCallIntent"])
    for key in ["NSMicrophoneUsageDescription", "NSSiriUsageDescription"] {
      #expect(information[key] as? String != nil, "\(key)")
    }
    #expect((information["TrunklineGateway"] as? String)?.hasPrefix("wss://") == true)
    let entitlements = try list(try #require(app.entitlements))
    #expect(
      entitlements["aps-environment"] as? String == "development" && entitlements["com.apple.developer.siri"] as? Bool == true)
  }

  @Test(arguments: [
    ("CallDirectoryExtension", "com.apple.callkit.call-directory", "Directory: TrunklineCallDirectoryProvider"),
    ("IntentsExtension", "com.apple.intents-service", "IntentHandler: INExtension, INStartCallIntentHandling"),
    ("NotificationsExtension", "com.apple.usernotifications.service", "NotificationService: UNNotificationServiceExtension"),
  ])
  func `REC-2, E2E-1, DIR-1: each extension names its point and a class that is there`(name: String, point: String, type: String)
    throws
  {
    let target = try #require(try targets()[name])
    let app = try #require(try targets()["SamplePhoneApp"])
    #expect(target.identifier.hasPrefix(app.identifier + "."), "an extension's identifier begins with its app's")
    let declaration = try #require(try list(target.information)["NSExtension"] as? Fields)
    #expect(declaration["NSExtensionPointIdentifier"] as? String == point)
    let principal = try #require(declaration["NSExtensionPrincipalClass"] as? String)
    #expect(principal == "$(PRODUCT_MODULE_NAME).\(type.prefix { $0 != ":" })")
    let sources = try target.sources.flatMap { try SurfaceBuild.files("Examples/SamplePhone/" + $0) }
    #expect(try sources.contains { try String(contentsOfFile: $0, encoding: .utf8).contains("final class \(type)") })
    if name == "IntentsExtension" {
      let attributes = declaration["NSExtensionAttributes"] as? Fields
      #expect(attributes?["IntentsSupported"] as? [String] == ["INStartCallIntent"])
    }
  }

  @Test func `E2E-1, DIR-1: app and extensions share a keychain group and an app group, as the sources name it`() throws {
    let targets = try targets()
    func entitlements(_ name: String) throws -> Fields { try list(try #require(targets[name]?.entitlements)) }
    let (app, service, directory) = (
      try entitlements("SamplePhoneApp"), try entitlements("NotificationsExtension"), try entitlements("CallDirectoryExtension")
    )
    let groups = "keychain-access-groups"
    // a new item is in the first group
    #expect((app[groups] as? [String])?.first == (service[groups] as? [String])?.first && app[groups] != nil)
    #expect(service["com.apple.developer.usernotifications.filtering"] as? Bool == true)
    let appGroups = "com.apple.security.application-groups"
    let shared = try #require((app[appGroups] as? [String])?.first)
    #expect(directory[appGroups] as? [String] == [shared])
    for file in ["App/CallerID.swift", "Extensions/CallDirectory/Directory.swift"] {
      #expect(try String(contentsOfFile: "\(Self.sample)/\(file)", encoding: .utf8).contains("\"\(shared)\""), "\(file)")
    }
    let identifier = try #require(targets["CallDirectoryExtension"]).identifier
    #expect(try String(contentsOfFile: "\(Self.sample)/App/CallerID.swift", encoding: .utf8).contains("\"\(identifier)\""))
  }
}
