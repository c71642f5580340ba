//! The scenarios in which the simulation has found errors of the engine. They are kept as text, so that they stay the same
//! when seeds draw other scenarios.

use std::time::Duration;

use super::extras::{Extras, Input, Log, PlannedStart, SimulatedInput};
use super::faults::Faults;
use super::scenario::{Kind, Scenario};
use crate::plan::{Limit, Notes, ReplayTiming, ScriptOptions, StagedPlan};
use crate::slices::Slices;
use ground::clock::MS;
use wire::statement::QueryMode;

/// Returns the scenarios, each with the error that it has found.
pub fn scenarios() -> Vec<(&'static str, Scenario)> {
    vec![
        (
            "a client was aborted twice, because the queue of transactions was full",
            Scenario {
                faults: Faults { service: (2_311_742, 34_439_740), clock_ns: 3_000, ..Faults::NONE },
                clients: 7,
                jobs: 4,
                describes: false,
                warmup: Duration::from_millis(258),
                connect_timeout: true,
                interrupt_at: Some(24_047 * MS),
                extras: Extras { is_rich: true, ..Extras::default() },
                ..Scenario::quiet(
                    74,
                    Kind::Staged(StagedPlan {
                        events: Some(178),
                        time: Some(Duration::from_millis(873)),
                        interval_ns: Some(4.095_155_743_565_798),
                        longest_queue: Some(964),
                        ..StagedPlan::default()
                    }),
                )
            },
        ),
        (
            "a client was aborted twice, because the queue of transactions was full",
            Scenario {
                faults: Faults {
                    error: 0.032_850_370_312_063_504,
                    service: (221_190, 2_131_015),
                    lateness: 2_714_143,
                    clock_ns: 3_000,
                    ..Faults::NONE
                },
                clients: 4,
                jobs: 2,
                mode: QueryMode::Prepared,
                warmup: Duration::from_millis(193),
                scripts: 3,
                interrupt_at: Some(24_104 * MS),
                extras: Extras { is_rich: true, ..Extras::default() },
                ..Scenario::quiet(
                    230,
                    Kind::Staged(StagedPlan {
                        events: Some(114),
                        interval_ns: Some(37.867_480_129_667_065),
                        longest_queue: Some(247),
                        ..StagedPlan::default()
                    }),
                )
            },
        ),
        (
            "transactions began after the end of the load or in another engine's slice, as soon as their connection was ready",
            Scenario {
                faults: Faults {
                    fragment: 0.252_072_290_759_530_2,
                    rejection: 0.044_924_125_343_787_17,
                    service: (2_297_706, 28_095_881),
                    lateness: 2_841_275,
                    ..Faults::NONE
                },
                clients: 7,
                jobs: 4,
                mode: QueryMode::Prepared,
                warmup: Duration::from_millis(48),
                options: ScriptOptions { continue_on_error: true, ..ScriptOptions::default() },
                slices: Some(Slices { length: 16 * MS, index: 1, of: 3, seed: 1_054_141_361_181 }),
                exit_on_abort: true,
                connect_timeout: true,
                interrupt_at: Some(20_539 * MS),
                extras: Extras {
                    start: Some(PlannedStart {
                        at: 233 * MS,
                        is_wall: false,
                        set: None,
                        input: Some(SimulatedInput {
                            parts: vec![
                                (286 * MS, Input::Bytes("monotonic:5000.23300000".to_owned())),
                                (375 * MS, Input::Bytes("0\n".to_owned())),
                            ],
                            is_time: true,
                        }),
                    }),
                    notes: Notes { failures: true, ..Notes::default() },
                    ..Extras::default()
                },
                ..Scenario::quiet(
                    338,
                    Kind::Closed {
                        limit: Limit::Time(Duration::from_millis(96)),
                        interval_ns: None,
                        reconnect: true,
                        wait_for_server: None,
                        thinks: false,
                    },
                )
            },
        ),
        (
            "transactions began after the end of the load or in another engine's slice, as soon as their connection was ready",
            Scenario {
                faults: Faults { service: (3_457_481, 16_414_685), ..Faults::NONE },
                clients: 8,
                jobs: 3,
                mode: QueryMode::Prepared,
                warmup: Duration::from_millis(24),
                scripts: 3,
                options: ScriptOptions {
                    latency_limit: Some(Duration::from_nanos(10_348_099)),
                    tries: Some(3),
                    ..ScriptOptions::default()
                },
                slices: Some(Slices { length: 12 * MS, index: 1, of: 2, seed: 325_312_200_005 }),
                interrupt_at: Some(20_317 * MS),
                extras: Extras { is_rich: true, ..Extras::default() },
                ..Scenario::quiet(
                    461,
                    Kind::Closed {
                        limit: Limit::Time(Duration::from_millis(48)),
                        interval_ns: None,
                        reconnect: true,
                        wait_for_server: None,
                        thinks: false,
                    },
                )
            },
        ),
        (
            "transactions began after the end of the load or in another engine's slice, as soon as their connection was ready",
            Scenario {
                faults: Faults {
                    crowd: 0.144_677_010_147_248_93,
                    interruption: 0.001_268_624_818_047_220_6,
                    error: 0.004_932_907_261_335_129,
                    service: (115_892, 201_329),
                    lateness: 155_877_190,
                    ..Faults::NONE
                },
                clients: 9,
                jobs: 3,
                shards: 2,
                mode: QueryMode::Extended,
                warmup: Duration::from_millis(234),
                options: ScriptOptions {
                    latency_limit: Some(Duration::from_nanos(21_750_397)),
                    tries: None,
                    continue_on_error: true,
                    ..ScriptOptions::default()
                },
                slices: Some(Slices { length: 39 * MS, index: 1, of: 3, seed: 704_420_168_311 }),
                interrupt_at: Some(20_266 * MS),
                ..Scenario::quiet(
                    693,
                    Kind::Closed {
                        limit: Limit::Time(Duration::from_millis(585)),
                        interval_ns: None,
                        reconnect: true,
                        wait_for_server: None,
                        thinks: false,
                    },
                )
            },
        ),
        (
            "an alarm came while clients connected",
            Scenario {
                faults: Faults {
                    refusal: 0.004_412_780_982_377_918,
                    silence: 0.008_243_766_557_348_998,
                    fragment: 0.105_134_842_218_725_35,
                    error: 0.019_763_935_975_138_987,
                    stall: 0.000_967_466_535_649_941_1,
                    service: (113_894, 230_991),
                    lateness: 26_385_670,
                    ..Faults::NONE
                },
                clients: 42,
                jobs: 2,
                exit_on_abort: true,
                interrupt_at: Some(21_969 * MS),
                alarm_at: Some(MS),
                ..Scenario::quiet(4_873, Kind::closed(Limit::Time(Duration::from_millis(397)), None))
            },
        ),
        (
            "an alarm came while clients connected",
            Scenario {
                faults: Faults {
                    silence: 0.001_350_305_208_776_306_4,
                    crowd: 0.083_752_732_576_892_92,
                    interruption: 0.012_838_777_555_725_179,
                    fragment: 0.475_621_030_558_601_17,
                    dismissal: 0.007_081_817_746_203_188_4,
                    service: (57_555, 90_298),
                    lateness: 2_801_934,
                    ..Faults::NONE
                },
                clients: 6,
                scripts: 2,
                interrupt_at: Some(21_571 * MS),
                alarm_at: Some(MS),
                extras: Extras { dismissal: 0.007_081_817_746_203_188_4, ..Extras::default() },
                ..Scenario::quiet(7_301, Kind::closed(Limit::Time(Duration::from_millis(303)), Some(685_733.4)))
            },
        ),
        (
            "an alarm came in the warm-up of a load with a rate",
            Scenario {
                faults: Faults { service: (4_012_637, 7_788_338), ..Faults::NONE },
                clients: 7,
                jobs: 4,
                mode: QueryMode::Prepared,
                warmup: Duration::from_millis(1_017),
                scripts: 2,
                options: ScriptOptions { timed_commands: true, tries: Some(2), ..ScriptOptions::default() },
                connect_timeout: true,
                interrupt_at: Some(20_838 * MS),
                alarm_at: Some(678 * MS),
                extras: Extras { is_rich: true, ..Extras::default() },
                ..Scenario::quiet(
                    6_797,
                    Kind::closed(Limit::Time(Duration::from_millis(97)), Some(73_027_965.119_930_55)),
                )
            },
        ),
        (
            "a failed transaction was counted twice, because its connection broke as well",
            Scenario {
                faults: Faults {
                    silence: 0.000_690_825_846_961_271_4,
                    crowd: 0.010_257_346_972_783_724,
                    error: 0.189_889_532_759_764_67,
                    stall: 0.004_089_233_393_377_929,
                    service: (223_277, 916_671),
                    lateness: 468_389_162,
                    ..Faults::NONE
                },
                clients: 2,
                shards: 2,
                scripts: 2,
                options: ScriptOptions {
                    latency_limit: Some(Duration::from_nanos(217_785)),
                    tries: None,
                    ..ScriptOptions::default()
                },
                exit_on_abort: true,
                interrupt_at: Some(23_373 * MS),
                extras: Extras { is_rich: true, time_includes_connecting: true, ..Extras::default() },
                ..Scenario::quiet(
                    140_719_348_538,
                    Kind::Closed {
                        limit: Limit::Transactions(3),
                        interval_ns: None,
                        reconnect: true,
                        wait_for_server: Some(Duration::from_millis(37)),
                        thinks: true,
                    },
                )
            },
        ),
        (
            "a thread that woke late for the start of the load began transactions in another engine's slice",
            Scenario {
                faults: Faults {
                    interruption: 0.084_178_904_368_698_29,
                    fragment: 0.105_271_136_297_480_78,
                    error: 0.036_195_119_024_820_88,
                    service: (249_351, 1_024_771),
                    lateness: 530_098_312,
                    ..Faults::NONE
                },
                clients: 4,
                jobs: 3,
                mode: QueryMode::Extended,
                scripts: 2,
                slices: Some(Slices { length: 30 * MS, index: 2, of: 3, seed: 159_056_466_916 }),
                exit_on_abort: true,
                interrupt_at: Some(23_792 * MS),
                ..Scenario::quiet(
                    25_214,
                    Kind::Staged(StagedPlan { time: Some(Duration::from_millis(270)), ..StagedPlan::default() }),
                )
            },
        ),
        (
            "clients that skipped starts began transactions in another engine's slice",
            Scenario {
                faults: Faults {
                    refusal: 0.006_619_144_561_797_793,
                    crowd: 0.495_262_246_893_095_6,
                    fragment: 0.007_793_098_087_823_707,
                    rejection: 0.016_961_359_139_061_5,
                    fracture: 0.000_898_457_423_129_676_6,
                    stall: 0.008_362_717_926_603_471,
                    service: (508_364, 2_628_774),
                    lateness: 6_778_245,
                    clock_ns: 3_000,
                    ..Faults::NONE
                },
                clients: 7,
                jobs: 3,
                mode: QueryMode::Prepared,
                describes: false,
                scripts: 3,
                options: ScriptOptions {
                    timed_commands: true,
                    latency_limit: Some(Duration::from_nanos(107_417_135)),
                    tries: Some(5),
                    continue_on_error: true,
                    ..ScriptOptions::default()
                },
                slices: Some(Slices { length: 58 * MS, index: 0, of: 2, seed: 965_050_597_951 }),
                interrupt_at: Some(23_524 * MS),
                ..Scenario::quiet(
                    602_972_461_978,
                    Kind::Closed {
                        limit: Limit::Time(Duration::from_millis(464)),
                        interval_ns: Some(2_423.997_314_736_159_3),
                        reconnect: false,
                        wait_for_server: Some(Duration::from_millis(1_552)),
                        thinks: false,
                    },
                )
            },
        ),
        (
            "clients that skipped starts began transactions in another engine's slice",
            Scenario {
                faults: Faults {
                    crowd: 0.006_243_012_453_759_317,
                    interruption: 0.002_072_555_533_860_514,
                    error: 0.008_003_063_859_079_678,
                    service: (197_405, 285_776),
                    lateness: 9_321_620,
                    clock_ns: 3_000,
                    ..Faults::NONE
                },
                clients: 4,
                jobs: 3,
                warmup: Duration::from_millis(72),
                scripts: 3,
                options: ScriptOptions {
                    timed_commands: true,
                    latency_limit: Some(Duration::from_nanos(2_460_791)),
                    tries: Some(4),
                    ..ScriptOptions::default()
                },
                slices: Some(Slices { length: 18 * MS, index: 0, of: 2, seed: 249_732_630_572 }),
                exit_on_abort: true,
                interrupt_at: Some(23_728 * MS),
                extras: Extras {
                    log: Some(Log { aggregate: None, sampling_rate: 1.0, is_unopened: false, failures_detailed: true }),
                    is_rich: true,
                    ..Extras::default()
                },
                ..Scenario::quiet(
                    602_972_462_361,
                    Kind::closed(Limit::Time(Duration::from_millis(216)), Some(5_384.587_268_450_511)),
                )
            },
        ),
        (
            "a simulated interrupt did not reach a thread that computed",
            Scenario {
                faults: Faults {
                    silence: 0.000_112_543_361_013_359_31,
                    interruption: 0.025_322_673_431_898_948,
                    fragment: 0.044_528_364_353_486_706,
                    service: (1_409_779, 2_900_560),
                    lateness: 543_911_310,
                    clock_ns: 3_000,
                    ..Faults::NONE
                },
                clients: 4,
                shards: 2,
                mode: QueryMode::Prepared,
                warmup: Duration::from_millis(1_002),
                scripts: 3,
                options: ScriptOptions {
                    latency_limit: Some(Duration::from_nanos(19_024_073)),
                    tries: Some(2),
                    continue_on_error: true,
                    ..ScriptOptions::default()
                },
                connect_timeout: true,
                interrupt_at: Some(139 * MS),
                extras: Extras { is_rich: true, ..Extras::default() },
                ..Scenario::quiet(
                    940_569_881_942,
                    Kind::Closed {
                        limit: Limit::Time(Duration::from_millis(1_466)),
                        interval_ns: Some(1.034_435_416_499_324_1),
                        reconnect: false,
                        wait_for_server: Some(Duration::from_millis(1_665)),
                        thinks: false,
                    },
                )
            },
        ),
        (
            "the connection of a recorded statement broke after its error",
            Scenario {
                faults: Faults {
                    interruption: 0.013_007_753_807_476_173,
                    error: 0.229_385_109_067_106_35,
                    fracture: 0.019_941_908_561_086_907,
                    is_deaf: true,
                    service: (646_177, 2_641_927),
                    lateness: 20_009_637,
                    ..Faults::NONE
                },
                clients: 7,
                jobs: 3,
                shards: 2,
                mode: QueryMode::Prepared,
                scripts: 2,
                connect_timeout: true,
                interrupt_at: Some(20_454 * MS),
                extras: Extras { is_deaf: true, ..Extras::default() },
                ..Scenario::quiet(412_006_538_033, Kind::Replayed { timing: ReplayTiming::BackToBack, time: None })
            },
        ),
        (
            "clients that waited for the measured part, because all transactions were taken, took part in a slice",
            Scenario {
                faults: Faults {
                    silence: 0.000_244_898_749_298_408_1,
                    stall: 0.004_769_340_689_777_131,
                    dismissal: 0.006_745_386_989_991_569,
                    service: (1_534_820, 4_108_726),
                    lateness: 6_977_645,
                    ..Faults::NONE
                },
                clients: 54,
                shards: 2,
                warmup: Duration::from_millis(128),
                scripts: 3,
                slices: Some(Slices { length: 32 * MS, index: 1, of: 2, seed: 943_707_245_756 }),
                interrupt_at: Some(22_502 * MS),
                extras: Extras { dismissal: 0.006_745_386_989_991_569, ..Extras::default() },
                ..Scenario::quiet(
                    1_548,
                    Kind::Staged(StagedPlan {
                        events: Some(9),
                        events_each: Some(14),
                        time: Some(Duration::from_millis(192)),
                        ..StagedPlan::default()
                    }),
                )
            },
        ),
        (
            "the totals of clients belonged to others, because only the second thread reported the measured part",
            Scenario {
                faults: Faults {
                    interruption: 0.001_836_719_355_945_176_7,
                    fragment: 0.010_089_892_570_337_718,
                    service: (168_008, 2_396_634),
                    lateness: 5_535_675,
                    ..Faults::NONE
                },
                clients: 7,
                jobs: 2,
                mode: QueryMode::Extended,
                describes: false,
                warmup: Duration::from_millis(1_023),
                scripts: 2,
                connect_timeout: true,
                interrupt_at: Some(21_135 * MS),
                extras: Extras { is_rich: true, ..Extras::default() },
                ..Scenario::quiet(
                    2_129,
                    Kind::Staged(StagedPlan {
                        events: Some(53),
                        time: Some(Duration::from_millis(1_459)),
                        ..StagedPlan::default()
                    }),
                )
            },
        ),
    ]
}
