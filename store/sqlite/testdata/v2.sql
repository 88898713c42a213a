BEGIN TRANSACTION;
CREATE TABLE cache (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL, -- JSON
    expires INTEGER      -- NULL: never
) WITHOUT ROWID;
CREATE TABLE checkpoint (
    run INTEGER PRIMARY KEY REFERENCES run (num),
    seq INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE context (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (num),
    name TEXT NOT NULL,
    start INTEGER NOT NULL, -- position of its first own message
    UNIQUE (run, name)
);
INSERT INTO "context" VALUES(1,1,'main',0);
INSERT INTO "context" VALUES(2,1,'lane',4);
CREATE TABLE flow (
    fingerprint TEXT PRIMARY KEY,
    normal BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
INSERT INTO "goose_db_version" VALUES(1,0,1,'2026-11-21 00:56:02');
INSERT INTO "goose_db_version" VALUES(2,1,1,'2026-11-21 00:56:02');
INSERT INTO "goose_db_version" VALUES(3,2,1,'2026-11-21 00:56:02');
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run INTEGER NOT NULL REFERENCES run (num),
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL, -- JSON
    sender TEXT NOT NULL,
    at INTEGER NOT NULL
);
CREATE TABLE message (
    id INTEGER PRIMARY KEY,
    role NOT NULL, -- 0 user, 1 assistant, 2 tool, 3 system, or a text
    content TEXT,
    value INTEGER REFERENCES value (id),
    key TEXT, -- the message's own id
    rest TEXT -- its other fields, JSON
);
INSERT INTO "message" VALUES(4294967296,0,'back 9dcec3ad back c',NULL,'chat#1/ask.text',NULL);
INSERT INTO "message" VALUES(4294967297,1,'weir a8c6d7f holds 730ad262 th',NULL,'chat#1/reply.1',NULL);
INSERT INTO "message" VALUES(4294967298,0,NULL,1,'chat#2/ask.text',NULL);
INSERT INTO "message" VALUES(4294967299,1,'back f5627d98 holds 9781583a back 80885ac6 the 9d8124e5 and b2f8040b the 612255ca and d7daea1d holds b2ea9f4a the a1bc0bbd holds f188fc84 water e44af926 back d4168dd7 and a6ae26aa ',NULL,'chat#2/reply.1',NULL);
INSERT INTO "message" VALUES(4294967300,0,NULL,2,'chat#3/ask.text',NULL);
INSERT INTO "message" VALUES(4294967301,1,'holds 29f9c9a4 weir 3b4347c7 the 693c9edc water dafecc78 weir 8f3a6827 weir 341a15ed weir 52d8cd41 water 9aec0222 and f961fe9d weir 65425a9f back c13d0e0f back e79d3b37 holds 2de6917c the 406da73e back 50eadef6 the 7fa111df back dfc8d310 holds 7b9b0792 and c8b7d07d water 8be61e91 the 5a43ef8 weir fe8d7191 back 7e078488 back e90b',NULL,'chat#3/reply.1',NULL);
INSERT INTO "message" VALUES(4294967302,0,NULL,3,'chat#4/ask.text',NULL);
INSERT INTO "message" VALUES(4294967303,1,'the 6999a089 and e383a7c7 back 2a106f92 weir 39cd7287 weir 58c460d9 water 220ba98c holds a1b582b and d354f223 the 6a7b37bd and 624d9807 water 685f8f6f holds 85fffc81 back de804d8a back 8f7dbc3 and 1937e2c4 water a2e2829a back 68c33591 water 77fb2fa1 back 357513f2 the 8efbfe41 holds 1c367d2d holds 42871f0b holds e44b4ade water 23fb0554 weir 6f7e3b6c the 19f189e0 weir 89d086cb the fcd28e36 back f49035a7 water fc8bd517 the 2c075f6a back 33ef1106 and 83f46737 weir 6ddfed26 water ',NULL,'chat#4/reply.1',NULL);
INSERT INTO "message" VALUES(4294967304,0,NULL,4,'chat#5/ask.text',NULL);
INSERT INTO "message" VALUES(4294967305,1,'holds 9537714f holds d953502d weir b724eebf and d9e19e32 water 33922f03 the 78adc01e the ff9342f4 the 11107020 the d6a9b48e weir 5df90bd1 and c4706831 water d2c665f6 water 3de29d03 holds eb4829e1 weir 1317dca9 holds 33bfe145 holds 8dd26bb0 back 43d6ffc3 water ec4bd18 back fa649bfe the 46750bd1 back 5e1b8750 the 457c2f39 the 95a54f49 and c134d30c and db7ae97e and bb69ee86 water 5d4bb111 weir a8b98c69 water e3ce869c back 786db295 weir e2181370 water a6d4a0fd water 6a0d8f16 weir 8d1562aa the f9fa9577 weir 6bbf9ae9 back facd96ab water 1bd894be water 8a6b4636 weir 8c6a4f29 weir dc5a3bba holds dc761bd2 back 7873e59 holds 65a64e0',NULL,'chat#5/reply.1',NULL);
INSERT INTO "message" VALUES(4294967306,0,NULL,5,'chat#6/ask.text',NULL);
INSERT INTO "message" VALUES(4294967307,1,'weir 7f798590 weir c873fbdc holds 9d5d37a2 and e89ab5bc holds fd22539e holds f0ae38aa back dbdbe249 the 858f0d0 holds 8c7cd26f water 11b411da holds 53b092f weir 2c89c6a3 back f4e3aa18 weir 35ca1375 and 2dcd53a5 the e8e168d2 back 54c978e6 holds cf6150e7 water 4bb9869c water e50c4902 back bd7529ee holds 73967ed5 the 46f7fcfe the dc90f79c back f821b81f the 2c03fd7d holds e1f87aab weir 570ea4ee back 2f7f7774 the 76e91648 water b4002df8 and 396e6041 holds e1f45013 weir cd124c8 and 2db6cc back 707e365c the c4ce4b water 75142c51 and 76ee3467 water b1023ff6 and 5d2b40de and 806d8b4 back 69f7816 and f938da5e weir 9329065d water 57d19b0c and cf69e845 the 5d104 the c640d0e7 weir a6bbcc26 back a1de4038 back ca704fb3 back 7abc4e36 water c3e43cb9 holds 13a26829 holds a6324e5b back 51',NULL,'chat#6/reply.1',NULL);
INSERT INTO "message" VALUES(4294967308,0,NULL,6,'chat#7/ask.text',NULL);
INSERT INTO "message" VALUES(4294967309,1,'holds 8cbac332 weir b82e76b7 holds 75de344e and cd13b77e the 4e297a05 holds 69b87a4b holds 659cdf22 weir c606cf20 holds 87a3ee88 the 42042d49 holds b8088c1 the 867ff5f8 water 99ec3d82 weir 620ae4f4 the 6e2d41d0 back 40e4e2aa back 757f0ca2 water c0ab8ccc water 90d2d088 weir f558f75d holds c3d93f5b water c52b6d5e back af2a3b63 water 34472725 holds ac25a66c holds 921b08f5 and 4fa113df back c03f0122 the 5482d80b holds ff45e6b8 the 811c2a87 back 226bb7bb the 61ee4d88 weir 6824488e the c306bb2d back bf716874 weir c9024024 and cca67282 and 60511779 the 2bc2b271 weir d9668b37 water ed1b92ff and fa9e870a and 8d9325a5 and 83ac0958 weir 79e045a9 the ad9c0155 weir 5f912d19 holds c646dd2c back 815aebae weir 2ae63c98 water ddc3e76a the 74654d76 holds dd3760f2 weir 2b6f00f5 water b0e5fede weir 88b20494 the a62437c5 back f389b90c back c2919dac water a1ed2ece water f5bf6dbd back a94cfb9 holds 35079526 the e9bafa61 water 9604f9cd and ',NULL,'chat#7/reply.1',NULL);
INSERT INTO "message" VALUES(4294967310,0,NULL,7,'chat#8/ask.text',NULL);
INSERT INTO "message" VALUES(4294967311,1,NULL,8,'chat#8/reply.1',NULL);
INSERT INTO "message" VALUES(4294967312,0,NULL,9,'chat#9/ask.text',NULL);
INSERT INTO "message" VALUES(4294967313,1,NULL,10,'chat#9/reply.1',NULL);
INSERT INTO "message" VALUES(4294967314,0,NULL,11,'chat#10/ask.text',NULL);
INSERT INTO "message" VALUES(4294967315,1,NULL,12,'chat#10/reply.1',NULL);
INSERT INTO "message" VALUES(4294967316,0,NULL,13,'chat#11/ask.text',NULL);
INSERT INTO "message" VALUES(4294967317,1,NULL,14,'chat#11/reply.1',NULL);
INSERT INTO "message" VALUES(4294967318,0,NULL,15,'chat#12/ask.text',NULL);
INSERT INTO "message" VALUES(4294967319,1,NULL,16,'chat#12/reply.1',NULL);
INSERT INTO "message" VALUES(4294967320,0,'one more',NULL,'m1',NULL);
INSERT INTO "message" VALUES(4294967321,1,'and another',NULL,'m2',NULL);
INSERT INTO "message" VALUES(8589934596,0,'said in the lane',NULL,'l1',NULL);
CREATE TABLE message_page (
    id INTEGER PRIMARY KEY,
    hashes BLOB NOT NULL
);
CREATE TABLE run (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    root INTEGER NOT NULL, -- num of the run that began the tree of runs
    salt BLOB,             -- of the digests in value; roots only
    flow TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    user TEXT,
    parent TEXT, -- run id
    origin TEXT,
    created INTEGER NOT NULL, -- Unix milliseconds, like all times here
    owner TEXT,               -- who holds the lease
    until INTEGER NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL DEFAULT 'pending',
    waiting TEXT, -- open interrupts, JSON
    due INTEGER NOT NULL DEFAULT 0,
    usage TEXT,
    error TEXT
);
INSERT INTO "run" VALUES(1,'r',1,X'00FFC3CCB591378CDE1B8E20240A7FFC','chain','f',NULL,NULL,NULL,1,'me',3600001,1,'paused',NULL,0,'[{"type":"effect.completed","usage":{"calls":13,"input":1300}}]',NULL);
INSERT INTO "run" VALUES(2,'chain',2,X'FDC5B4054A3D7634D0C5479BA633CC4B','chain','f',NULL,NULL,NULL,1,'me',3600001,1,'running',NULL,0,NULL,NULL);
CREATE TABLE run_commit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,   -- milliseconds after run.created
    last INTEGER NOT NULL, -- number of its last event in the run
    base INTEGER,
    messages TEXT, -- context.id,position,count,... of what it appended
    events TEXT NOT NULL
);
INSERT INTO "run_commit" VALUES(4294967297,1800000004999,6,NULL,NULL,'[{"type":"run.started","flow":"chat","fingerprint":"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff","origin":"cli","parallel":8,"contexts":[{"context":"main","create":true,"body":{"create":true,"kind":"main","settings":{"model":"gpt-5-mini","provider":"openai","system":"You are kind."}}}]},{"type":"node.started","node":"chat"},{"type":"node.expanded","node":"chat","items":[{}]},{"type":"iteration.started","scope":"chat#1"},{"type":"node.started","node":"chat#1/ask","grants":["main"]},{"type":"node.waiting","node":"chat#1/ask","interrupts":[{"id":"chat#1/ask:ask#1","kind":"input","prompt":"You:"}]}]');
INSERT INTO "run_commit" VALUES(4294967298,1800000009999,10,NULL,NULL,'[{"type":"interrupt.answered","interrupt":"chat#1/ask:ask#1","value":"back 9dcec3ad back c"},{"type":"node.resumed","node":"chat#1/ask","grants":["main"]},{"type":"node.completed","node":"chat#1/ask","outputs":{"text":"back 9dcec3ad back c","value":"back 9dcec3ad back c","context":{"$context":"main"}},"contexts":[{"context":"main","body":{"output":"back 9dcec3ad back c"}}],"us":69},{"type":"node.started","node":"chat#1/reply","grants":["main"]}]');
INSERT INTO "run_commit" VALUES(4294967299,1800000014999,16,NULL,'1,0,2','[{"type":"effect.completed","key":"chat#1/reply/model#1","digest":"1f173e9663be1e9d","result":{"id":"resp_c8987376b65a157b","message":{"role":"assistant","text":{"$m":1}},"model":"gpt-5-mini-2026-08-07","stop":"end","usage":{"input":5003,"output":946}},"usage":{"calls":1,"input":5003,"output":946,"cost":1667},"us":456702},{"type":"node.completed","node":"chat#1/reply","outputs":{"text":{"$m":1},"result":{"$m":1},"usage":{"calls":1,"input":5003,"output":946},"context":{"$context":"main"}},"contexts":[{"context":"main","adds":2,"body":{"append":2}},{"context":"main","body":{"output":""}}],"us":757737},{"type":"iteration.completed","scope":"chat#1","outputs":{"said":{"$m":1}}},{"type":"iteration.started","scope":"chat#2"},{"type":"node.started","node":"chat#2/ask","grants":["main"]},{"type":"node.waiting","node":"chat#2/ask","interrupts":[{"id":"chat#2/ask:ask#1","kind":"input","prompt":"You:"}]}]');
INSERT INTO "run_commit" VALUES(4294967300,1800000019999,20,NULL,NULL,'[{"type":"interrupt.answered","interrupt":"chat#2/ask:ask#1","value":{"$v":1}},{"type":"node.resumed","node":"chat#2/ask","grants":["main"]},{"type":"node.completed","node":"chat#2/ask","outputs":{"text":{"$v":1},"value":{"$v":1},"context":{"$context":"main"}},"contexts":[{"context":"main","body":{"output":{"$v":1}}}],"us":36},{"type":"node.started","node":"chat#2/reply","grants":["main"]}]');
INSERT INTO "run_commit" VALUES(4294967301,1800000024999,26,3,'1,2,2','[["chat#1",2,"chat#2",3,5003,2248,946,629],2,"f8db9658647611e5",3,"resp_f81a741cf3983d0f",13,749,14,850578,28,522253]');
INSERT INTO "run_commit" VALUES(4294967302,1800000029999,30,4,NULL,'[["chat#2",3,1,2],13,83]');
INSERT INTO "run_commit" VALUES(4294967303,1800000034999,36,3,'1,4,2','[["chat#1",3,"chat#2",4,5003,8375],2,"2e2e198f2209ee05",3,"resp_aaaf313511807ae0",13,2791,14,957672,28,664292]');
INSERT INTO "run_commit" VALUES(4294967304,1800000039999,40,4,NULL,'[["chat#2",4,1,3],13,32]');
INSERT INTO "run_commit" VALUES(4294967305,1800000044999,46,3,'1,6,2','[["chat#1",4,"chat#2",5,5003,7618,946,382],2,"a42b4c3e55d5cbfb",3,"resp_d13fbb464ef9ba24",13,2539,14,932806,28,144905]');
INSERT INTO "run_commit" VALUES(4294967306,1800000049999,50,4,NULL,'[["chat#2",5,1,4],13,88]');
INSERT INTO "run_commit" VALUES(4294967307,1800000054999,56,3,'1,8,2','[["chat#1",5,"chat#2",6,5003,4329,946,137],2,"33156c6a8935ca98",3,"resp_6f43553f6481b936",13,1443,14,628423,28,151552]');
INSERT INTO "run_commit" VALUES(4294967308,1800000059999,60,4,NULL,'[["chat#2",6,1,5],13,26]');
INSERT INTO "run_commit" VALUES(4294967309,1800000064999,66,3,'1,10,2','[["chat#1",6,"chat#2",7,5003,5499,946,369],2,"adcf52d396c0a6be",3,"resp_67d99df83c20abf6",13,1833,14,323384,28,587260]');
INSERT INTO "run_commit" VALUES(4294967310,1800000069999,70,4,NULL,'[["chat#2",7,1,6],13,21]');
INSERT INTO "run_commit" VALUES(4294967311,1800000074999,76,3,'1,12,2','[["chat#1",7,"chat#2",8,5003,2437,946,969],2,"999dd769f30e1266",3,"resp_834f97b5f3ccacc2",13,812,14,529685,28,534545]');
INSERT INTO "run_commit" VALUES(4294967312,1800000079999,80,4,NULL,'[["chat#2",8,1,7],13,93]');
INSERT INTO "run_commit" VALUES(4294967313,1800000084999,86,NULL,'1,14,2','[{"type":"effect.completed","key":"chat#8/reply/model#1","digest":"d92aaf1a148728e2","result":{"id":"resp_0536a27521b783c3","message":{"role":"assistant","text":{"$v":8}},"model":"gpt-5-mini-2026-08-07","stop":"end","usage":{"input":8378,"output":875}},"usage":{"calls":1,"input":8378,"output":875,"cost":2792},"us":434125},{"type":"node.completed","node":"chat#8/reply","outputs":{"text":{"$v":8},"result":{"$v":8},"usage":{"calls":1,"input":8378,"output":875},"context":{"$context":"main"}},"contexts":[{"context":"main","adds":2,"body":{"append":2}},{"context":"main","body":{"output":""}}],"us":821420},{"type":"iteration.completed","scope":"chat#8","outputs":{"said":{"$v":8}}},{"type":"iteration.started","scope":"chat#9"},{"type":"node.started","node":"chat#9/ask","grants":["main"]},{"type":"node.waiting","node":"chat#9/ask","interrupts":[{"id":"chat#9/ask:ask#1","kind":"input","prompt":"You:"}]}]');
INSERT INTO "run_commit" VALUES(4294967314,1800000089999,90,4,NULL,'[["chat#2",9,1,9],13,55]');
INSERT INTO "run_commit" VALUES(4294967315,1800000094999,96,17,'1,16,2','[["chat#8",9,"chat#9",10,8378,1221,875,307,8,10],2,"be8d9d3eca36b44c",3,"resp_e0666fd2f319f45c",13,407,14,733430,28,871074]');
INSERT INTO "run_commit" VALUES(4294967316,1800000099999,100,4,NULL,'[["chat#2",10,1,11],13,99]');
INSERT INTO "run_commit" VALUES(4294967317,1800000104999,106,17,'1,18,2','[["chat#8",10,"chat#9",11,8378,4218,875,309,8,12],2,"771f8c11fba3e1e3",3,"resp_c410a993a69f7e80",13,1406,14,536454,28,137790]');
INSERT INTO "run_commit" VALUES(4294967318,1800000109999,110,4,NULL,'[["chat#2",11,1,13],13,99]');
INSERT INTO "run_commit" VALUES(4294967319,1800000114999,116,17,'1,20,2','[["chat#8",11,"chat#9",12,8378,1430,875,263,8,14],2,"9816b6f516a5b967",3,"resp_ce408e6bb95635d9",13,476,14,341102,28,862184]');
INSERT INTO "run_commit" VALUES(4294967320,1800000119999,120,4,NULL,'[["chat#2",12,1,15],13,54]');
INSERT INTO "run_commit" VALUES(4294967321,1800000124999,126,17,'1,22,2','[["chat#8",12,"chat#9",13,8378,4104,875,561,8,16],2,"6ed330062b96522a",3,"resp_d186bca9bcaa915d",13,1368,14,421212,28,278198]');
INSERT INTO "run_commit" VALUES(4294967322,1800000129999,127,NULL,NULL,'[{"type":"node.started","node":"b","forks":[{"context":"lane","create":true,"parent":"main","at":4}]}]');
INSERT INTO "run_commit" VALUES(4294967323,1800000134999,128,NULL,'2,4,1,1,24,2','[{"type":"node.completed","node":"b","contexts":[{"context":"lane","adds":1,"body":{"append":1}},{"context":"main","adds":2,"body":{"append":2}}]}]');
INSERT INTO "run_commit" VALUES(8589934593,1800000000000,2,NULL,NULL,'[{"type":"node.completed","node":"n1","outputs":{"out":1},"us":3},{"type":"node.started","node":"n2"}]');
INSERT INTO "run_commit" VALUES(8589934594,1800000000001,4,1,NULL,'[[],1,"n2",2,2,5,"n3"]');
INSERT INTO "run_commit" VALUES(8589934595,1800000000002,6,1,NULL,'[[],1,"n3",2,3,5,"n4"]');
CREATE TABLE value (
    id INTEGER PRIMARY KEY,
    root INTEGER NOT NULL,
    digest BLOB,
    body TEXT -- JSON; NULL where it is in value_part
);
INSERT INTO "value" VALUES(1,1,NULL,'"water 12be8f07 weir c7467d1 water 3511c6f6 the 557863ba back"');
INSERT INTO "value" VALUES(2,1,NULL,'"water 685568dd back c87705f3 the 3bc457f0 back 8db9921f back d14a0682 back db6a9eab holds b87fbabf t"');
INSERT INTO "value" VALUES(3,1,NULL,'"holds f010ea4d the b05edb5c weir 8a0cb9db and a18da374 water 1efc9165 back e96b588a holds 6f8b8010 back f1b40cef and b49735d6 weir c0f89957 "');
INSERT INTO "value" VALUES(4,1,NULL,'"the 10469f64 the 43a9935f holds 18a21fa1 and bab310c3 weir ba2f1389 back eb04b07e the 64229692 the 4f088660 weir ae56e2b water c905ef54 water ea7105f back 27cf8deb back 3b3e24eb an"');
INSERT INTO "value" VALUES(5,1,NULL,'"and bd6f1c3 back 51089654 water d8efe654 weir fb0354eb the ecb5d695 the c27ec9df water 24bbc66c the 4d272272 back 7fac41f4 holds f7545d83 water 8460145a the b8261da water eb73ea59 and baf92c73 holds 93df9c8f holds 2a71f3"');
INSERT INTO "value" VALUES(6,1,NULL,'"back e6875ac2 and 7e4b2cce the 32c717c1 and 68fa1c32 the 9a4d6198 weir b64c024a and 2582caf5 water 87ae0aa8 water bde74c21 holds 27a5af90 weir ae469350 holds 6eff775b holds 270e5a86 the 52be8121 and 69fecec3 weir 4b1ad8ea and 1e49c2f holds 334ed777 the 881f94a"');
INSERT INTO "value" VALUES(7,1,NULL,'"holds e956f4a9 and a035e349 the e4a975df the ab00b32e the a06cfe5a water f1d3987d weir cdcdc04a holds 9849cfbe weir 5c276d8c water edf145b2 weir cd87d171 and 2b8e109d weir 1dce8c30 and a6e84fb the 2352124a and e8f4c4d5 water 8f4793b4 back 7507b9e9 holds 29f89045 the 4fa461c8 holds 776b4f00 holds b4a"');
INSERT INTO "value" VALUES(8,1,X'7B0601DFFDE46464079CB258A534F35E',NULL);
INSERT INTO "value" VALUES(9,1,NULL,'"weir 1d6efe97 the f5e38d6d holds 48b5a461 back c33babcf holds 68e286b3 weir 3252529d water faede87f water daef2b7f and 800a08f6 holds 3269ce0f weir 87e1a588 and a5bee18e weir ac223834 and c51b8bee water 65e6e04a holds 854c3332 weir fc7dbbb6 the 40ca19bf and 3e7870f back 9674d881 back baaeeaf3 weir 5843996e and 1cce2d2b weir f42e4651 back "');
INSERT INTO "value" VALUES(10,1,X'2DCE6FE49B98AC0896263279514998CF',NULL);
INSERT INTO "value" VALUES(11,1,NULL,'"water 18e9aebe weir 3e7e2b5e water f98f94a7 and f87bbc0e back 31317221 the 7105975f and 88c0b574 water 171b613b weir b1a59c76 water 341a6f81 water 990c1f68 water c6d519 the a539b21b holds 58055e8d weir bc433128 the f6fa0319 back 42ca4f6b the 8f3de89a the 1ed40d6a back cc80671d holds e3c9d067 back a365debe back f28a9a1c holds c32cca7c holds 5f38b4dd holds f4b6f121 weir c7604142 "');
INSERT INTO "value" VALUES(12,1,X'99ECCC70843DB8EE458E1858498A1647',NULL);
INSERT INTO "value" VALUES(13,1,NULL,'"water 7b9afca weir 16ab3ab7 water ed7fd0fc back 51f86b60 water e2a54d0c and 6687f231 weir 20c8aed4 water f2e5480 the 936ad3c2 holds 4f355c6 water bb0a9620 and 7ee6f96a holds 14212d06 weir 3f27a99c holds 604d8b28 and d9078658 holds 18d9d6cc water d8b0f416 and 2cbb8e4e holds 779345cf the 9d0208d4 holds b44c5638 holds b065c121 weir 2086db4f holds f3996935 back eadb52ed holds 1174c813 back b0d3ec3f and 2a74fa4f weir 52a4"');
INSERT INTO "value" VALUES(14,1,X'A7170B94E766517BE077064F896AB5BD',NULL);
INSERT INTO "value" VALUES(15,1,NULL,'"weir 1ab0d85f weir 2254dd76 back 4dd9869b water 604d96dd holds 99d9270 holds 7fea0108 the 45755d0b holds b8cb746c back ccab6552 holds 729d6487 weir 6e93ad2b water 26555067 weir 2436c3ca holds 4026ee3e weir 9d0efaa1 water 68746e95 weir 240d901a holds 2358b0e2 the 88377765 holds b658a173 back 2e3fb8ac back 7fbfd6bc the a2f9c647 water 24215ba weir 430b674e and 42707bd7 back 5f0ccdb0 and ff855c08 back f18cb11d weir 9f771032 water e63e98f5 holds c188d81f holds "');
INSERT INTO "value" VALUES(16,1,X'F51FF09253317B2CB0294F2FC8A7F48A',NULL);
CREATE TABLE value_part (
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);
INSERT INTO "value_part" VALUES(8388608,'"weir 76aef752 water fdc98746 the a6bbbe73 water bc732b5d and 19fa4ce1 and fda869ca and 96f4951c water ae6e2e8e back ad7749b weir 6b13355a back 1215cdf1 the 4d951b53 water 535b72b5 and bbff9d37 holds c92f372c and f2fc0b42 the fb5b51d8 and 7ae092eb the d9a1dfbf weir 305ab9a3 back bc1bf502 water 64830cd3 the 9603f05a weir db737356 weir 1eb3eaba back 22bde368 holds 4d54ef75 the 82ba5384 back 336b5624 water 2c3a4f3e back 90873efa weir 4ecee0de water 3a5a715b holds a42f79b6 water 638a67d9 back a98a3f');
INSERT INTO "value_part" VALUES(8388609,'44 and 71cbf610 and de05b182 holds 354a8486 holds a8cedd12 holds f4b2635d back 10d18e43 back a64818a4 back 808dda1e holds 9eba5626 water c18e0d58 back 129e3258 back ea8b3f2d holds 3156bf5b water 78aaead9 and d5fb5d72 and 683589d6 and 21bea383 back 358e95da the d0a8295c weir 3a86125b holds 5725d7e0 back 1ba39ad3 the 9b618ef2 and 33fbffea back da69eeca back d6828daa the f1399fff holds 32ca9628 holds 5db4079e the bb16c94a the 358860a the fabc7ef weir d8d272e0 holds 352da636 the c90629b9 holds f07d3');
INSERT INTO "value_part" VALUES(8388610,'0e2 the c41ae928 back 91613283 and 389430aa weir 85093b79 the e8131660 back 9c2de"');
INSERT INTO "value_part" VALUES(10485760,'"water fdaa700f weir 514c3fee the 2b32fd7 holds e2183ec9 holds 553c061d water ba274e9c weir 8ac690ab weir edb3419f holds 59a8cfd2 and 8d70f756 holds a14b6ebd water cebe575c water 973fc15a and c0a22d0a water 570787e5 back 6070f233 holds 7c2a55aa holds 19ba9bd2 and d9b355c2 and bd0dceb3 back 498e9f7 back d664f43a water 2162fe74 water b12acd8 water ceb904fc the d6c48086 and 2509e17f back 2d14c340 the b783d1aa water 9c2858af holds f0354d73 back 7f0383da and 98b663e6 the 1c204fc9 back 38a1ac48 back e');
INSERT INTO "value_part" VALUES(10485761,'84fc7be holds 1c715509 holds 34aa178b and 43066d4f holds 39dc7e2a weir 37400190 and 3220fbdb holds 114671f8 holds 233fcd48 the 17fa49a3 and fbaaeb8f holds 8d823850 the 7b9af8a5 back c4aa7bf7 weir 173335a9 weir d8e8d712 weir d789da10 and 820dbf20 the 58a2d797 the c60db6b5 water f825e91b back 8827f09f and 9734565e back 136fc135 the ade09850 and 10a16b4e the 27421dc and 226e834a back 16a2005f water 5e686a1a and 13d873af the df5cdd28 holds 50a7bddf water 4a9e64eb water 9f6b53ab holds 5ddde021 the 24');
INSERT INTO "value_part" VALUES(10485762,'80dc45 and f65e3e11 weir e8b1949e back cbb847f4 weir dff9903 back e6a9d376 back bd60bff3 back 11cb03a2 holds b0c087dd holds 63a87e73 back a37b1d12 the ec234ba2 back 749e2fb1 water 713cf604 weir 581ff86c the 8e8bd08a back 8fc22cd1 a"');
INSERT INTO "value_part" VALUES(12582912,'"the ddaa4220 weir 72084af0 and 523b29df back 738421b8 weir 5c26e780 back 60aaa384 back d78000af and b786e589 the 2daa1047 holds ed209c85 and f29e9467 water fdcff257 back 79d89d9d the ea3bc421 back a4a06725 water d18f053f the 417e7633 weir 1ef8b412 and 952b3246 back 8705c694 water eb1f9497 back 765184e1 holds b04920be the 4047d152 weir 150e33fa back 36b87654 the 1311b83b weir b03b0d3 water 57cebeae and c4e2cfd1 holds 451c4353 water 84d676f3 and 9bb2d323 back 48d23b7c and 578f4a8a holds 82dd88fc ');
INSERT INTO "value_part" VALUES(12582913,'and 6e2dc22e back 75989f9e water c6160241 and 42f900dd water 1a042329 back 4cd89bf2 the 48a54dc0 water c1e9d703 the 518b5276 the 8d748dcf weir 517b441d back 9eb95f79 back 1760aca1 and 964b64ad the aa6eec3e back e8f49331 holds 231b09d7 holds caae7d0d water 52f97735 and e4098cb0 back b70d498e holds 667febdb holds 57936e50 the db7b5853 water b75123c9 and 6db7d1b7 water 91b562e9 holds 5d68d885 holds eb5e9f03 weir c0065c0 weir da7b87f4 back 3f41777f and bbcca52 weir 6188ce1a holds 10e1b9 back 2388ceb');
INSERT INTO "value_part" VALUES(12582914,'2 and a152efe8 and 64c5e369 the c6724fbd water b87207e5 the b6d12bdb back 5031238b holds 8af580a9 back 7d4602a2 and 95fcc9e3 and a715245d weir 44ae4c40 back 21bbf7a8 holds 6c3d2fd3 water 53cc40fd weir 42f75f13 back 714b209b back 44fde969 and 6db4a4c holds 9b404add water 5459f77e holds 8995775a water 44c69fe8 water 36c19d45 weir dc866ba6 back f86b4607 holds a3aace55 weir 91017cf1"');
INSERT INTO "value_part" VALUES(14680064,'"the 2a43003e weir face64bb the e77074a0 holds fb63bc38 holds 537a56d1 weir eef76cf0 the cb2daf69 water 11985242 the b90a8c90 the 370d5ec7 holds e1a0a8d1 and 96fb46a5 back 18545329 holds 3e4eedbf water 4db0951f weir 3de909d4 holds 9313a02b holds ec55efc9 water 3a4efede and 8db492da and c9ba8b4d back 7ed4d9a0 weir f80697bd holds 4a63e2ae the 4ba0f16d water 1d48bd5e water 80063d94 holds 53ad7a36 water ce26595e water 3fdbea34 weir 5e008525 water 751c98ea back 96ff3cdc back 2885b008 water 9d50e78c b');
INSERT INTO "value_part" VALUES(14680065,'ack 351b69aa back 569e7ff9 the f4c86d9d holds 85bfa62e the 668aeee8 holds 5ecc05d7 and 210c9514 holds b59b24fa water dc0c05b the 8e75e47a weir 394c324a and db7d4644 water 22baa0d5 holds 8053298d weir 8f33c2ff and 64f9116d the 47d935aa holds ea09aa47 water b5016ae7 and 314234e2 and a8c9640d water 34ab0b1c weir 8b4fed72 weir f6609353 holds 22c15802 water 21bae460 holds de3d3ee3 holds affd6e94 back a23cb6c9 and b029aa8b water 662937fe the e6fc6ec8 back 7aef5e5 back a9d127d4 weir cf5cf613 the c8ef6b');
INSERT INTO "value_part" VALUES(14680066,'f5 and 6260981c weir b0905b70 water 4e68fcb8 back 232839cc the fc67c4d1 holds e45f8410 and 763e5fd4 water 88a57de weir c382f398 the 89d5e98 holds 1001adf4 holds d2153001 holds 9c7bbe0d the 86aaa51a and a2e9d7f3 the fe5e7024 the 4f5d54e0 the 997b3605 water ae922a6d water bd9cbf48 weir 7954de55 holds 71a6577 holds 323d5319 water bde73797 back fdc46da5 weir 60db0adb back f1ea3c78 the 20f86dc0 weir 6c13e94b and 32e5bc4 holds 4e802bfe the a1287267 water ad1f7353 and f003a0c4 the d89a5467 and efc138ad');
INSERT INTO "value_part" VALUES(14680067,' back 99761576 and ae7bf589 the"');
INSERT INTO "value_part" VALUES(16777216,'"and 7072bfbe weir 56811e6b back 76694938 weir dc372574 back 54d50854 weir 48d173d0 the d05a559a water 36e5d0b7 holds 405f5e2a and 8b92aa74 weir bb985daf and 1d7e2cf4 holds 3aa1a1cb and a1c2f337 the 4980cd49 and cec8c134 water 2beb1081 water 45e4ee3d water 9da3c8b and 63556fa1 weir 970bf9fe holds c4ad9525 holds 58d16256 the 1b186d9f water 3e57a8f5 back a23b207f and c84b1343 and 29e3b05b water e2b269e holds 999d1296 water aa3eb1b4 back 6cecce22 holds 283bf195 and ec1f2f07 the d4ced67f water 35e98');
INSERT INTO "value_part" VALUES(16777217,'cd6 holds fb518d23 the 5d6d47a4 and 42d28ba4 weir 4aa4694 weir 88a42720 and a9582c54 the d398af59 the 37aa38a2 back e1537386 holds eb0f4030 water 55d8be99 water 957cfcfa back 98d1096e holds e00b8be1 water 557c53ad water f4349f57 and 6f61d9ba holds 5aefea46 holds 9ff0464f and f814d604 weir dfe587df back 770f9d0e and 1fa498cf the 8ca0149b weir 3c4a09e6 weir d6662a55 weir aabbee6 the ec07951a water 7159d3ee weir 22bedfe9 back 80c45f8 water 41aedabf weir 57af7cca weir 73525270 weir edfd4c95 weir 133');
INSERT INTO "value_part" VALUES(16777218,'66cf3 the d6c14441 weir 13f8bcae water f6f9e938 water 62fc345e back 60495ed2 holds 936e55d9 holds 2c4d7829 the a2d4eb7c water e49fc335 and ef9af437 the 3c512932 holds fd8c7c87 water 6ba41f4b water 663f00b8 water c66d7029 the 7fcdec17 water 6d55620b the a2d15904 holds cf6e408d holds 1617f5d7 and b15194b6 water 7d675a79 water e9b13c07 weir 3d70545 holds 3ba85f49 holds 4faf8bbd water 3570dfdd weir 74e9578a weir b7a30a1d water fa13157a back 5d662710 the 8100f4ed and a539535d and 38b281e6 water 1a255');
INSERT INTO "value_part" VALUES(16777219,'379 holds 901fb443 water d913456f holds f5a4203d holds e9b673ae back 2214f101 back f3da198b water 7f0ae160 the bc06c1b3 water aed2e14c the ebb214a2 and 8c277821 weir ed7386c2 water "');
CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;
CREATE INDEX run_due ON run (due) WHERE due > 0;
CREATE UNIQUE INDEX value_digest ON value (root, digest) WHERE digest IS NOT NULL;
CREATE VIEW value_json (id, body) AS
SELECT v.id, coalesce(v.body, (SELECT group_concat(body, '') FROM (
    SELECT body FROM value_part WHERE id >= v.id << 20 AND id < (v.id + 1) << 20 ORDER BY id)))
FROM value v;
CREATE INDEX inbox_run ON inbox (run);
CREATE VIEW message_text (run, context, position, role, content) AS
SELECT r.id, c.name, m.id & 0xffffffff,
    CASE m.role WHEN 0 THEN 'user' WHEN 1 THEN 'assistant' WHEN 2 THEN 'tool' WHEN 3 THEN 'system' ELSE m.role END,
    coalesce(m.content, (SELECT body ->> '$' FROM value_json WHERE id = m.value))
FROM message m
JOIN context c ON c.id = m.id >> 32
JOIN run r ON r.num = c.run;
CREATE VIEW journal (run, seq, at, events) AS
SELECT r.id, c.id & 0xffffffff, r.created + c.at,
    CASE WHEN c.base IS NULL THEN c.events ELSE (
        WITH RECURSIVE
        leaf (path, i, atom, type) AS (
            SELECT t.fullkey, row_number() OVER (ORDER BY t.id) - 1, t.atom, t.type
            FROM run_commit b, json_tree(b.events) t
            WHERE b.id = (c.id >> 32 << 32) + c.base AND t.type NOT IN ('object', 'array')
        ),
        pair (k, was, now) AS (
            SELECT f.key, f.value, iif(f.type = 'text' AND t.type = 'integer', rtrim(f.value, '0123456789') || t.value, t.value)
            FROM json_each(c.events, '$[0]') f, json_each(c.events, '$[0]') t
            WHERE f.key % 2 = 0 AND t.key = f.key + 1
        ),
        change (n, path, atom, quoted) AS (
            SELECT row_number() OVER (ORDER BY i), path, atom, quoted FROM (
                SELECT l.i, l.path, iif(l.type = 'text', p.now || substr(l.atom, length(p.was) + 1), p.now) AS atom,
                    l.type = 'text' AS quoted, min(p.k)
                FROM leaf l JOIN pair p ON typeof(p.was) = typeof(l.atom) AND (l.atom = p.was OR l.type = 'text'
                    AND substr(l.atom, 1, length(p.was)) = p.was
                    AND substr(l.atom, length(p.was) + 1, 1) IN ('/', ':'))
                WHERE l.i NOT IN (SELECT value FROM json_each(c.events) WHERE key % 2 = 1)
                GROUP BY l.i
                UNION ALL
                SELECT l.i, l.path, x.value, x.type = 'text', 0
                FROM json_each(c.events) k
                JOIN json_each(c.events) x ON x.key = k.key + 1
                JOIN leaf l ON l.i = k.value
                WHERE k.key % 2 = 1
            )
        ),
        step (n, doc) AS (
            SELECT 0, b.events FROM run_commit b WHERE b.id = (c.id >> 32 << 32) + c.base
            UNION ALL
            SELECT s.n + 1, CASE WHEN h.quoted THEN json_set(s.doc, h.path, h.atom)
                ELSE json_set(s.doc, h.path, json(h.atom)) END
            FROM step s JOIN change h ON h.n = s.n + 1
        )
        SELECT doc FROM step ORDER BY n DESC LIMIT 1
    ) END
FROM run_commit c
JOIN run r ON r.num = c.id >> 32;
CREATE INDEX cache_expires ON cache (expires) WHERE expires IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('goose_db_version',3);
COMMIT;
