import ArgumentParser
import CommandSupport
import TrunklineAppCheck

/// `trunkline-lab check-app`: checks the declarations that an app with calls needs, before it is on a device.
struct CheckAppCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check-app",
    abstract: "Reports what an app lacks for calls in Info.plist and entitlements, and imports of inner modules.",
    discussion: """
      Reads the app and its extensions: for the Call Directory, for intents and for notifications. In a folder of sources each has its
      Info.plist and its .entitlements in a folder of its own; where Xcode generates the Info.plist, give the .app that it built, whose
      entitlements are read from the signature.

      Exit status: 0 nothing is missing, 1 something is, 2 a file cannot be read.

      EXAMPLES:
        trunkline-lab check-app Examples/SamplePhone
        trunkline-lab check-app ~/Library/Developer/Xcode/DerivedData/Phone-abc/Build/Products/Release-iphoneos/Phone.app
      """)

  @Argument(help: ArgumentHelp("The folder of the sources, or the .app.", valueName: "path")) var path: String

  func run() throws {
    let check: AppCheck
    do throws(AppCheck.Problem) {
      check = try AppCheck(path: path)
    } catch {
      complain("\(error)")
      throw ExitCode(2)
    }
    Console.line(check.text)
    if !check.findings.isEmpty { throw ExitCode(1) }
  }
}
