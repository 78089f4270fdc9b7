import AppleStandIn
import Foundation
import Testing
import TrunklineCallDirectory

/// DIR-4: the app's half.
@Suite struct DirectoryExtensionsTests {
  @Test func `DIR-4: off, then the settings, then on: the status says so, and the reload loads`() async throws {
    let rig = try Rig(extensions: 2)
    let extensions = DirectoryExtensions(rig.store, manager: rig.manager)
    try rig.store.replace(with: [.labelled(1, "a")])
    rig.manager.change { $0.set(rig.names[0], .disabled) }
    rig.manager.change { $0.set(rig.names[1], .unknown) }
    #expect(await extensions.status().map(\.position) == [.off, .unknown])
    let refused = await extensions.reload()
    #expect(refused.map(\.identifier) == rig.names && refused.map(\.failure?.code) == [6, 6])
    #expect(refused.map(\.failure?.nextStep) == [.enable, .enable])
    try await extensions.openSettings()
    #expect(rig.manager.settingsOpened == 1)
    for name in rig.names { rig.manager.change { $0.set(name, .enabled) } }
    #expect(await extensions.status().map(\.loadedVersion) == [nil, nil])
    #expect(await extensions.reload().map(\.failure) == [nil, nil])
    let status = await extensions.status()
    #expect(status.map(\.position) == [.on, .on] && status.map(\.loadedVersion) == [1, 1])
    #expect(rig.match(phone(1).value).label == "a")
  }

  @Test func `an extension that is not there is code 1 for status and reload, and the next one is loaded nevertheless`()
    async throws
  {
    let rig = try Rig(extensions: 2)
    try rig.store.replace(with: [])
    let manager = CXCallDirectoryManager()
    let (path, name, log) = (rig.path, rig.names[1], rig.log)
    manager.install(name) { Rig.Directory(path, name, log) }
    let extensions = DirectoryExtensions(rig.store, manager: manager)
    let status = await extensions.status()
    #expect(status.map(\.failure?.code) == [1, nil] && status.map(\.position) == [.unknown, .on])
    let reloads = await extensions.reload()
    #expect(reloads.map(\.failure?.code) == [1, nil] && reloads[0].failure?.nextStep == .correctProject)
  }

  @Test func `a file that the extension could not read is reported without asking iOS`() async throws {
    let rig = try Rig()
    let extensions = DirectoryExtensions(rig.store, manager: rig.manager)
    let missing = await extensions.reload()[0].failure
    #expect(missing?.nextStep == .writeAgain && missing?.domain == CallDirectoryFailure.ourDomain)
    try rig.store.replace(with: [.blocked(1)])
    try rig.put(Array(try rig.bytes(rig.current()).dropLast()), rig.current())
    #expect(await extensions.reload()[0].failure?.description.contains("damaged") == true)
    #expect(rig.log.outcomes.isEmpty)
  }

  @Test func `each code of iOS has a next step, and so have the ones that nobody documented`() {
    let steps: [Int: CallDirectoryFailure.NextStep] = [
      1: .correctProject, 3: .writeAgain, 4: .writeAgain, 5: .split, 6: .enable,
    ]
    var texts: Set<String> = []
    for code in [Int.min, -1] + Array(0...12) + [102, 4_097, Int.max] {
      let error = NSError(domain: "com.apple.CallKit.error.calldirectorymanager", code: code)
      let failure = CallDirectoryFailure(error)
      #expect(failure.code == code && failure.nextStep == steps[code] ?? .tryLater, "code \(code)")
      #expect(failure.description.contains("\(code)"))
      texts.insert(failure.description)
    }
    #expect(texts.count == 18)
    let apple = CallDirectoryFailure(CXErrorCodeCallDirectoryManagerError(.extensionDisabled))
    #expect(apple.domain == CallDirectoryFailure.appleDomain && apple.code == 6 && apple.nextStep == .enable)
    let other = CallDirectoryFailure(NSError(domain: NSCocoaErrorDomain, code: 6))
    #expect(other.nextStep == .tryLater && other.description.contains("not one of Call Directory's"))
    #expect(CallDirectoryFailure(DirectoryError.missing("a")).nextStep == .writeAgain)
  }
}
