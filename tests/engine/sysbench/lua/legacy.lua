-- The interface of sysbench 0.5: options as globals, functions without an object, a result set at a time.
function prepare()
   db_connect()
   db_query("CREATE TABLE legacy (n int PRIMARY KEY, v text)")
   db_bulk_insert_init("INSERT INTO legacy VALUES")
   for i = 1, (legacy_rows or 10) do
      db_bulk_insert_next("(" .. i .. ", 'v" .. i .. "')")
   end
   db_bulk_insert_done()
   print("prepared", db_driver, legacy_rows)
   db_disconnect()
end

function cleanup()
   db_connect()
   db_query("DROP TABLE IF EXISTS legacy")
   print("dropped")
end

function help()
   print("legacy help")
end

function thread_init(id)
   db_connect()
   print("thread_init", id, thread_id, sysbench.tid)
   print("options", legacy_rows, type(legacy_rows), num_threads, max_requests, oltp_table_size, myisam_max_rows, mysql_table_engine)
   print("constants", DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED)
end

function event(id)
   local rs = db_query("SELECT n, v FROM legacy ORDER BY n")
   print("query", type(rs))
   db_query("UPDATE legacy SET v = 'w' WHERE n = 1")
   print("random", type(sb_rand(1, 5)), type(sb_rand_uniform(1, 5)), #sb_rand_str("###"), type(sb_rnd()))
   local stmt = db_prepare("SELECT v FROM legacy WHERE n = ?")
   print("close", pcall(db_close, stmt))
   print("event", id)
end

function thread_done(id)
   print("thread_done", id)
   db_disconnect()
end
