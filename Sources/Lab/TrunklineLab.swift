import ArgumentParser
import CommandSupport
import TrunklinePlatform

@main
struct TrunklineLab: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "trunkline-lab", abstract: "Simulates the peers of a gateway: carrier, app, push services, many calls.",
    discussion: """
      No installation needs it. A command that starts a gateway runs `trunkline` beside this file, or what TRUNKLINE_BINARY
      names.

      EXAMPLES:
        trunkline-lab demo --once
        trunkline-lab trunk --call +15551230001 --talk 5 --record heard.wav
        trunkline-lab phone --answer --token "$(trunkline token --user alice --device desk)" --device desk
        trunkline-lab phones --phones phones.jsonl
        trunkline-lab load --steps 20,60,100
        trunkline-lab push-sandbox --certificate sandbox.pem --key AuthKey.p8
        trunkline-lab handset --script call.txt --app ./MyApp
        trunkline-lab check-app Examples/SamplePhone
        trunkline-lab check-trace phone.trace
        trunkline-lab record-trace --receive 192.0.2.20:5004 --out lte.csv
      """,
    version: Version.text,
    subcommands: [
      DemoCommand.self, TrunkCommand.self, PhoneCommand.self, PhonesCommand.self, LoadCommand.self, PushSandboxCommand.self,
      HandsetCommand.self,
      CheckTraceCommand.self, CheckAppCommand.self, RecordTraceCommand.self,
    ])

  static func main() {
    ProcessSignals.endAtOnceInCrash()
    main(ProcessArguments.all)
  }
}
