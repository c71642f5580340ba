-- Which suppliers of a nation have far more forged parts in stock than they shipped in a year?
select s.supplier_id, s.supplier, s.address
from suppliers s
join nations n on n.nation_id = s.nation_id
where n.nation = 'Kastela'
  and s.supplier_id in (
      select o.supplier_id
      from offers o
      where o.part_id in (select part_id from parts where part like 'forged%')
        and o.available > (
            select 100 * sum(l.quantity)
            from lines l
            where l.part_id = o.part_id
              and l.supplier_id = o.supplier_id
              and l.shipped_on >= date '2021-01-01'
              and l.shipped_on < date '2022-01-01'
        )
  )
order by s.supplier_id;
