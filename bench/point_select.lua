-- One row by its key, as people write it: a connection for each thread, a text for each query.

sysbench.cmdline.options = {
   table_size = {"Rows of sbtest1", 100000},
}

function thread_init()
   con = sysbench.sql.driver():connect()
end

function event()
   con:query(string.format("SELECT c FROM sbtest1 WHERE id = %d", sysbench.rand.uniform(1, sysbench.opt.table_size)))
end

function thread_done()
   con:disconnect()
end
